//! Tests of the dashboard in a real Chromium: pages, actions, and what it must never do. Left out without Chromium.

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
