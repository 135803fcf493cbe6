"""Logs of Inspect: one JSON document, or an `.eval` archive with a JSON file for each sample.

A text that stands in a sample's `attachments` is put back where the log names it.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Final

from attrs import evolve

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.live.transcripts import messages
from assisted_benchmark.suite.live.transcripts.calls import SHORTER, Transcript, refused

KIND: Final = "inspect"
_MAGIC: Final = b"PK\x03\x04"
_ENTRY: Final = b"PK\x01\x02"
_MOST_ENTRIES: Final = 20_000
_SAMPLES: Final = "samples/"
_ATTACHMENT: Final = "attachment://"
_PLAIN: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


def is_archive(data: bytes) -> bool:
    """Whether this is an archive, as `.eval` files are."""
    return data.startswith(_MAGIC)


def is_log(value: Json) -> bool:
    """Whether this JSON value is a log."""
    return type(value) is dict and type(value.get("eval")) is dict and type(value.get("samples")) is list


def unpacked(data: bytes, file: str, sample: str, most: int) -> tuple[str, bytes]:
    """The name and the bytes of one sample's file: of the only one, or of the one that `sample` names.

    Raises:
        DocumentError: it is no such archive, or what is in it is too large.
    """
    if data.count(_ENTRY) > _MOST_ENTRIES:
        raise refused(Reason.TOO_LARGE, f"the archive has more than {_MOST_ENTRIES} entries", file, hint="cut it")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found: dict[str, zipfile.ZipInfo] = {}
            for each in archive.infolist():
                if each.filename.startswith(_SAMPLES) and each.filename.endswith(".json"):
                    name = each.filename[len(_SAMPLES) : -len(".json")]
                    if name in found:
                        raise refused(
                            Reason.DUPLICATE_ID, f"the archive has the sample `{shown(name, 60)}` twice", file
                        )
                    found[name] = each
            info = found[_chosen(list(found), file, sample)]
            if info.compress_type not in _PLAIN:
                hint = "write it as JSON: inspect log convert --to json"
                raise refused(
                    Reason.UNREADABLE, "the archive is packed in a way that is not read here", file, hint=hint
                )
            with archive.open(info) as unpacking:
                # Whatever its header says: no more than this is ever unpacked.
                whole = unpacking.read(most + 1)
    except (*_BROKEN, struct.error, OverflowError) as error:
        detail = f"the archive cannot be read: {shown(str(error), 100)}"
        raise refused(Reason.UNREADABLE, detail, file, hint="copy it again") from error
    if len(whole) > most:
        raise refused(Reason.TOO_LARGE, f"the sample has more than {most} bytes", file, hint=SHORTER)
    return info.filename, whole


def transcript(log: Json, file: str, sample: str) -> Transcript:
    """The calls of one sample of a log.

    Raises:
        DocumentError: it has several, and none is named; or no such.
    """
    samples = {_name(each): each for each in log["samples"] if type(each) is dict}
    found = samples[_chosen(list(samples), file, sample)]
    attachments, said = found.get("attachments"), found.get("messages")
    if type(attachments) is dict:
        said = _attached(said, attachments)
    listed = [(each, 0) for each in said if type(each) is dict] if type(said) is list else []
    return evolve(messages.read(listed, file), kind=KIND)


def _name(sample: Json) -> str:
    return f"{sample.get('id')}_epoch_{sample.get('epoch', 1)}"


def _chosen(names: list[str], file: str, sample: str) -> str:
    fitting = [each for each in names if sample in ("", each, each.rpartition("_epoch_")[0])]
    if len(fitting) == 1:
        return fitting[0]
    some = ", ".join(f"`{shown(each, 60)}`" for each in (fitting or names)[:3])
    if fitting:
        hint = f"name one as `sample`, such as {some}"
        raise refused(Reason.MISSING_KEY, f"the log has {len(fitting)} samples", file, hint=hint)
    hint = did_you_mean(sample, names) or f"there are {some or 'none'}"
    raise refused(Reason.UNKNOWN_REFERENCE, f"the log has no sample `{shown(sample, 60)}`", file, hint=hint)


def _attached(value: Json, attachments: Json) -> Json:
    """The value with the attachments that it names; they name no others."""
    if type(value) is list:
        return [_attached(each, attachments) for each in value]
    if type(value) is dict:
        return {key: _attached(each, attachments) for key, each in value.items()}
    if type(value) is str and value.startswith(_ATTACHMENT):
        found = attachments.get(value[len(_ATTACHMENT) :], value)
        return found if type(found) is str else value
    return value
