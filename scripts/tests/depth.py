"""How many examples a state machine runs with: few in every run, 2,000 with `--hypothesis-profile deep`."""

from hypothesis import HealthCheck, settings

DEEP = "deep"
EXAMPLES = 2000

settings.register_profile(DEEP, max_examples=EXAMPLES, deadline=None)


def at_depth(examples, steps):
    """The settings of a machine that usually runs with so many examples of so many steps."""
    deep = settings.get_current_profile_name() == DEEP
    return settings(
        max_examples=EXAMPLES if deep else examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
