//! Tests of the dashboard in a real Chromium: its pages and actions, and what it must never do. They are left out
//! where Chromium is not installed.

mod actions;
mod browser;
mod bulk;
mod dashboard;
mod hostile;
mod keyboard;
mod keys;
mod live;
mod pages;
mod tenants;
mod times;
mod wrong;
