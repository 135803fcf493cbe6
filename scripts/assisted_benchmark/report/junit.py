"""junit.xml: one test case a case; a case that could not run is an error, never a failure."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.report.summary import fault_lines, verdicts
from assisted_benchmark.suite.result import CaseResult, RunResult, Verdict


def junit(run: RunResult) -> bytes:
    """The run as JUnit XML (UTF-8). Times are 0: durations are not part of a reproducible report."""
    counts = verdicts(run.cases)
    suite = Xml.Element(
        "testsuite",
        name="assisted-benchmark",
        tests=str(len(run.cases)),
        failures=str(counts[Verdict.FAILED]),
        errors=str(counts[Verdict.COULD_NOT_RUN]),
        skipped="0",
        time="0",
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in (("seed", run.seed), ("durability", run.durability), ("repeat", run.repeat)):
        Xml.SubElement(properties, "property", name=name, value=str(value))
    for stamp in run.stamps:
        Xml.SubElement(properties, "property", name="not guaranteed", value=shown(stamp))
    for case in run.cases:
        suite.append(_case(case))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    document: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(case: CaseResult) -> Xml.Element:
    folder, _, name = case.id.rpartition("/")
    element = Xml.Element("testcase", classname=folder.replace("/", "."), name=name, file=shown(case.file), time="0")
    if case.verdict is Verdict.FAILED:
        lines = [shown(line, 2000) for line in fault_lines(case)]
        first = lines[0] if lines else "failed"
        fault = Xml.SubElement(element, "failure", type=Reason.EXPECTATION_MISSED.value, message=first)
        fault.text = "\n".join(lines)
    elif case.verdict is Verdict.COULD_NOT_RUN:
        fault = Xml.SubElement(element, "error", type=case.reason, message=shown(case.detail, 2000))
        fault.text = shown(case.detail, 2000)
    return element
