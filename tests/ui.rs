//! The dashboard in a real browser: its pages, its actions, and what it must never do. Left out where Chromium is not
//! installed.

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
