//! Grammars: the language of a file, and the role of the nodes of its syntax tree.

use tree_sitter::{Language, Node};

/// The language of a file, by its extension.
pub(crate) fn language_of(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    let language = match ending {
        "rs" => tree_sitter_rust::LANGUAGE,
        "py" | "pyi" => tree_sitter_python::LANGUAGE,
        // TypeScript is a superset of JavaScript.
        "js" | "jsx" | "mjs" | "cjs" | "tsx" => tree_sitter_typescript::LANGUAGE_TSX,
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        "go" => tree_sitter_go::LANGUAGE,
        "java" => tree_sitter_java::LANGUAGE,
        // Nearly all C code is valid C++.
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "cu" => tree_sitter_cpp::LANGUAGE,
        _ => return None,
    };
    Some(language.into())
}

/// The role of a node in an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeRole {
    /// A definition.
    Definition,
    /// A definition that may contain others.
    Container,
    /// Not a definition itself, but may contain some.
    Wrapper,
    /// Neither is nor contains definitions.
    Other,
}

impl NodeRole {
    pub(crate) fn from_node(node: &Node<'_>) -> NodeRole {
        match node.kind() {
            // Rust
            "function_item"
            | "function_signature_item"
            | "struct_item"
            | "enum_item"
            | "union_item"
            | "macro_definition"
            | "const_item"
            | "static_item"
            | "type_item" => NodeRole::Definition,
            "impl_item" | "trait_item" | "mod_item" | "foreign_mod_item" => NodeRole::Container,
            // Python, C, C++
            "function_definition" => NodeRole::Definition,
            "class_definition" => NodeRole::Container,
            "decorated_definition" | "block" => NodeRole::Wrapper,
            "class_specifier" | "struct_specifier" | "union_specifier" | "namespace_definition" => {
                if node.child_by_field_name("body").is_some() { NodeRole::Container } else { NodeRole::Other }
            }
            "enum_specifier" if node.child_by_field_name("body").is_some() => NodeRole::Definition,
            "type_definition" | "alias_declaration" | "concept_definition" | "preproc_function_def" => {
                NodeRole::Definition
            }
            "template_declaration"
            | "linkage_specification"
            | "preproc_ifdef"
            | "preproc_if"
            | "preproc_else" => NodeRole::Wrapper,
            "field_declaration_list" => NodeRole::Wrapper,
            "declaration" | "field_declaration" if declares_function(node) => NodeRole::Definition,
            "declaration" => NodeRole::Wrapper,
            // Go, Java, TypeScript
            "function_declaration"
            | "generator_function_declaration"
            | "method_declaration"
            | "constructor_declaration"
            | "compact_constructor_declaration"
            | "method_elem"
            | "method_definition"
            | "method_signature"
            | "abstract_method_signature"
            | "function_signature"
            | "annotation_type_declaration"
            | "type_alias_declaration" => NodeRole::Definition,
            "type_declaration"
            | "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration"
            | "internal_module" => NodeRole::Container,
            "lexical_declaration" | "const_declaration" | "var_declaration" if is_outermost(node) => {
                NodeRole::Definition
            }
            "type_spec"
            | "interface_type"
            | "class_body"
            | "interface_body"
            | "enum_body"
            | "enum_body_declarations"
            | "declaration_list"
            | "export_statement"
            | "ambient_declaration"
            | "statement_block"
            | "ERROR" => NodeRole::Wrapper,
            _ => NodeRole::Other,
        }
    }
}

/// Returns whether a C or C++ declaration declares a function.
fn declares_function(node: &Node<'_>) -> bool {
    node.child_by_field_name("declarator").is_some_and(|found| found.kind() == "function_declarator")
}

/// Returns whether a node is at the top level of the file, possibly exported.
fn is_outermost(node: &Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        matches!(parent.kind(), "program" | "source_file" | "export_statement" | "statement_block")
    })
}
