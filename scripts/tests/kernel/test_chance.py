"""Chance is handed in: unpredictable in earnest, reproducible in scenarios."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from assisted_benchmark.kernel.chance import SeededChance, SystemChance


def test_the_system_gives_tokens_of_the_asked_size_and_never_the_same():
    chance = SystemChance()
    tokens = {chance.token(16) for _ in range(100)}
    assert ({len(token) for token in tokens}, len(tokens)) == ({16}, 100)


def test_one_seed_gives_one_sequence_and_another_seed_another():
    def tokens(seed: str) -> list[bytes]:
        chance = SeededChance(seed)
        return [chance.token(size) for size in (16, 16, 8)]

    assert tokens("7") == tokens("7")
    assert [len(token) for token in tokens("7")] == [16, 16, 8]
    assert len({*tokens("7"), *tokens("8")}) == 6


def test_the_seeded_sequence_is_pinned_so_that_old_runs_can_be_repeated():
    chance = SeededChance("7")
    assert (chance.token(8).hex(), chance.token(8).hex()) == ("04d426c447eb6043", "032c0cced200c2e2")


def test_threads_that_share_a_seed_never_get_the_same_token():
    chance = SeededChance("7")
    with ThreadPoolExecutor(4) as pool:
        tokens = list(pool.map(lambda _: chance.token(16), range(400)))
    assert len(set(tokens)) == 400
