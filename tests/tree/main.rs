//! Rules of the source tree: imports go one way, and documents and sample files name only what exists. The tests read
//! files, and run cargo and promtool; they start no server.

mod alarms;
mod build_size;
mod circles;
mod code_names;
mod dashboards;
mod deploy;
mod docs;
mod files;
mod image;
mod imports;
mod layers;
mod modules;
mod reference;
mod scripts;
mod source;
mod words;
