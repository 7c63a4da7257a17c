"""Cron schedules, time zones and the instants and windows that they describe."""
