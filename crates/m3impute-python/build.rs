//! On some systems the linker must be told that the symbols of Python come later.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
