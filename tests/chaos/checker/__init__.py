"""Judges an audit log: values in, violations out.

Written from the documents. Nothing of what it judges is imported here, so that no mistake is shared; a contract of the import
linter holds that.
"""

from tests.chaos.checker.log import Entry, parse
from tests.chaos.checker.terms import Disturbance, Terms, Violation
from tests.chaos.checker.verdict import Verdict, judge

__all__ = ["Disturbance", "Entry", "Terms", "Verdict", "Violation", "judge", "parse"]
