"""MAC keys: one a purpose, never printed, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import itertools

import pytest
from marks import promise

from assisted_benchmark.kernel import keys
from assisted_benchmark.kernel.keys import Key, KeyRing, Purpose

RING = KeyRing("k1", b"m" * 32)


@promise("K5")
def test_a_mac_is_hmac_sha_256_over_purpose_id_and_framed_parts():
    key = Key("k1", Purpose.GRANT, b"s" * 32)
    covered = b"".join(len(part).to_bytes(8, "big") + part for part in (b"grant@1", b"k1", b"one", b"two"))
    assert key.mac(b"one", b"two") == hmac.new(b"s" * 32, covered, hashlib.sha256).digest()


@promise("K5")
def test_a_key_verifies_its_own_macs_and_nothing_else():
    key = RING.key(Purpose.GRANT)
    mac = key.mac(b"one", b"two")
    assert key.verify(mac, b"one", b"two")
    assert not key.verify(mac, b"onet", b"wo")
    assert not key.verify(mac, b"one")
    assert not key.verify(mac[:-1], b"one", b"two")
    assert not key.verify(b"", b"one", b"two")
    assert not key.verify(bytes([mac[0] ^ 1]) + mac[1:], b"one", b"two")


@promise("K5")
@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(Purpose, 2)))
def test_a_mac_of_one_purpose_never_verifies_under_another(one, other):
    assert not RING.key(other).verify(RING.key(one).mac(b"part"), b"part")
    same_secret = Key("k1", one, b"s" * 32), Key("k1", other, b"s" * 32)
    assert not same_secret[1].verify(same_secret[0].mac(b"part"), b"part")


@promise("K5")
def test_the_key_id_is_covered_but_never_trusted_by_itself():
    mac = RING.key(Purpose.LEDGER).mac(b"part")
    renamed = KeyRing("k2", RING.master)
    stranger = KeyRing("k1", b"x" * 32)
    assert not renamed.key(Purpose.LEDGER).verify(mac, b"part")
    assert not stranger.key(Purpose.LEDGER).verify(mac, b"part")


@promise("K5")
def test_every_purpose_has_a_secret_of_its_own_that_does_not_show_the_master():
    secrets = {RING.key(purpose).secret for purpose in Purpose}
    assert len(secrets) == len(Purpose)
    assert {len(secret) for secret in secrets} == {32}
    assert RING.master not in secrets
    assert RING.key(Purpose.GRANT) == RING.key(Purpose.GRANT)


@promise("K5")
def test_no_secret_is_printed():
    shown = f"{RING!r} {RING} {RING.key(Purpose.GRANT)!r}"
    assert shown == "KeyRing(id='k1') KeyRing(id='k1') Key(id='k1', purpose=<Purpose.GRANT: 'grant'>)"


@promise("K5")
def test_macs_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(keys.hmac, "compare_digest", lambda one, other: compared.append((one, other)) or True)
    key = RING.key(Purpose.OPERATOR)
    assert key.verify(b"given", b"part")
    assert compared == [(b"given", key.mac(b"part"))]
