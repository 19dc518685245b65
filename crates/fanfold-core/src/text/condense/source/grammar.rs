//! What the grammars say: which language a file is in, and which nodes of its tree are definitions.

use tree_sitter::{Language, Node};

/// The language of a file, by the ending of its name.
pub(crate) fn language_of(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    let language = match ending {
        "rs" => tree_sitter_rust::LANGUAGE,
        "py" | "pyi" => tree_sitter_python::LANGUAGE,
        // All of JavaScript is TypeScript, too.
        "js" | "jsx" | "mjs" | "cjs" | "tsx" => tree_sitter_typescript::LANGUAGE_TSX,
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        "go" => tree_sitter_go::LANGUAGE,
        "java" => tree_sitter_java::LANGUAGE,
        // Nearly all of C is C++, too.
        "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "cu" => tree_sitter_cpp::LANGUAGE,
        _ => return None,
    };
    Some(language.into())
}

/// What a node is for an outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A definition.
    Defines,
    /// A definition that holds others.
    Holds,
    /// No definition, and there may be some in it.
    Wraps,
    /// Neither.
    Other,
}

impl Role {
    pub(crate) fn of(node: &Node<'_>) -> Role {
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
            | "type_item" => Role::Defines,
            "impl_item" | "trait_item" | "mod_item" | "foreign_mod_item" => Role::Holds,
            // Python, C, C++
            "function_definition" => Role::Defines,
            "class_definition" => Role::Holds,
            "decorated_definition" | "block" => Role::Wraps,
            "class_specifier" | "struct_specifier" | "union_specifier" | "namespace_definition" => {
                if node.child_by_field_name("body").is_some() { Role::Holds } else { Role::Other }
            }
            "enum_specifier" if node.child_by_field_name("body").is_some() => Role::Defines,
            "type_definition" | "alias_declaration" | "concept_definition" | "preproc_function_def" => {
                Role::Defines
            }
            "template_declaration"
            | "linkage_specification"
            | "preproc_ifdef"
            | "preproc_if"
            | "preproc_else" => Role::Wraps,
            "field_declaration_list" => Role::Wraps,
            "declaration" | "field_declaration" if declares_function(node) => Role::Defines,
            "declaration" => Role::Wraps,
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
            | "type_alias_declaration" => Role::Defines,
            "type_declaration"
            | "class_declaration"
            | "abstract_class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration"
            | "internal_module" => Role::Holds,
            "lexical_declaration" | "const_declaration" | "var_declaration" if is_outermost(node) => {
                Role::Defines
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
            | "ERROR" => Role::Wraps,
            _ => Role::Other,
        }
    }
}

/// Whether a declaration in C or C++ is that of a function.
fn declares_function(node: &Node<'_>) -> bool {
    node.child_by_field_name("declarator").is_some_and(|found| found.kind() == "function_declarator")
}

/// Whether nothing but the file, or an `export`, is around a node.
fn is_outermost(node: &Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        matches!(parent.kind(), "program" | "source_file" | "export_statement" | "statement_block")
    })
}
