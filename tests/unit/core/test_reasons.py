"""The catalogue is complete: every code has a meaning and a way out, and no code is lost."""

import re

import pytest

from core import catalogue, reasons

_CODES = {
    name: value
    for name, value in vars(reasons).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}


def test_every_code_is_in_the_catalogue_and_the_other_way_round() -> None:
    assert set(_CODES.values()) == set(catalogue.CATALOGUE)


def test_codes_are_camel_case_and_agree_with_their_constants() -> None:
    for name, code in _CODES.items():
        assert re.fullmatch(r"(?:[A-Z][a-z]*)+", code), code
        assert name.replace("_", "").lower() == code.lower()


def test_the_reasons_known_to_volcano_users_keep_their_names() -> None:
    assert {
        "GetTaskRequestResourceFailed",
        "EmptyQueueCapability",
        "InsufficientCPUQuota",
        "InsufficientMemoryQuota",
        "InsufficientScalarQuota",
    } <= catalogue.CATALOGUE.keys()


def test_every_reason_says_what_it_means_and_what_to_do() -> None:
    for code, reason in catalogue.CATALOGUE.items():
        assert reason.code == code
        assert reason.meaning
        assert catalogue.remedy(code) == reason.remedy != ""


def test_an_unknown_code_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        catalogue.remedy("NoSuchReason")
