"""The alarm clock: wakes sweeps at the instants that `calendar` computed."""
