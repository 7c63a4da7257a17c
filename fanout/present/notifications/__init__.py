"""Notifications: transitions between passes, their events, and deliveries that wait."""
