"""Cron lines, time zones and the instants they mean."""
