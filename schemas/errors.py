"""The errors Planweave raises.

PlanweaveError
├── UserError                 a person's mistake; the message says what to do
│   ├── SettingsError         a setting is missing or wrong
│   ├── InputError            the objective, or a resume value, cannot be used
│   ├── ToolDefinitionError   two tools of one name, or unusable tool metadata
│   ├── PlanInvalid           a plan that breaks a rule; .problems lists every violation
│   ├── ThreadBusy            another run holds this thread
│   └── NothingToResume       the thread has no unfinished run
├── StorageError              the database or a file could not be used
├── LimitReached              a product limit; carries .limit (its name) and .value
├── ModelAnswerError          a model's answer could not be used
│   ├── AnswerInvalid         it never fitted the schema
│   ├── AnswerTruncated       it was cut at the model's token limit
│   └── AnswerRefused         the provider or the model refused; .refusal quotes it
└── InvariantBroken           a bug of ours
"""

from collections.abc import Sequence


class PlanweaveError(Exception):
    """Root of all errors that Planweave raises."""


class UserError(PlanweaveError, ValueError):
    """A person's mistake. A ValueError too: an Agent Server hides the message of what is none."""


class SettingsError(UserError):
    """A setting is missing or wrong."""


class InputError(UserError):
    """The objective or a resume value cannot be used."""


class ToolDefinitionError(UserError):
    """A tool cannot be offered: its name is taken, or its metadata is wrong."""


class PlanInvalid(UserError):
    """A plan breaks the rules; `problems` has one line for each violation."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


class ThreadBusy(UserError):
    """Another run is working on this thread."""


class NothingToResume(UserError):
    """The thread has no unfinished run, or no pending question."""


class StorageError(PlanweaveError):
    """The database, or a file under PLANWEAVE_HOME, could not be used."""


class LimitReached(PlanweaveError):
    """A product limit ended the work.

    Args:
        limit: the limit's name in RunLimits or Step.
        value: its value, in the limit's own unit.
    """

    def __init__(self, limit: str, value: float) -> None:
        super().__init__(f"{limit} of {value:g} reached")
        self.limit = limit
        self.value = value


class ModelAnswerError(PlanweaveError):
    """A model's answer could not be used."""


class AnswerInvalid(ModelAnswerError):
    """The answer never fitted its schema; `problems` are those of the last try."""

    def __init__(self, schema: str, problems: Sequence[str]) -> None:
        super().__init__(f"no valid {schema}: " + "; ".join(problems))
        self.problems = list(problems)


class AnswerTruncated(ModelAnswerError):
    """The answer was cut at the model's token limit."""


class AnswerRefused(ModelAnswerError):
    """The model or its provider refused; `refusal` quotes the words."""

    def __init__(self, refusal: str) -> None:
        super().__init__(f"the model refused: {refusal}")
        self.refusal = refusal


class InvariantBroken(PlanweaveError):
    """Something that must never happen did: a bug in Planweave."""
