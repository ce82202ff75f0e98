"""Devices that pods claim (Dynamic Resource Allocation), counted by DeviceClass against the quota of queues."""
