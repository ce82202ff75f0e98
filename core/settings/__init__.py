"""The settings of every process: one frozen value, read once from one document and the environment.

`Settings()` holds all defaults. `parse` reads what a person wrote; it names every wrong key and value with its
path, so that a process never starts on a misread configuration.
"""

from core.settings.model import (
    CardSettings,
    CrossQuotaSettings,
    DraSettings,
    ExtenderSettings,
    FeatureSettings,
    GateSettings,
    MgpuSettings,
    QueueSettings,
    QuotaSettings,
    ReservationSettings,
    Settings,
    VolcanoSettings,
    WebhookSettings,
)
from core.settings.parsing import SettingsError, parse, render

__all__ = [
    "CardSettings",
    "CrossQuotaSettings",
    "DraSettings",
    "ExtenderSettings",
    "FeatureSettings",
    "GateSettings",
    "MgpuSettings",
    "QueueSettings",
    "QuotaSettings",
    "ReservationSettings",
    "Settings",
    "SettingsError",
    "VolcanoSettings",
    "WebhookSettings",
    "parse",
    "render",
]
