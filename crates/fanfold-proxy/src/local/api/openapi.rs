//! The OpenAPI description, derived from the table of routes.

use serde_json::{Map, Value, json};

use super::PATH;
use super::route::{Method, Parameter, ParameterLocation, ParameterType, ResponseShape, Route};
use super::table::ROUTES;

/// The OpenAPI 3.1 description.
pub(crate) fn describe() -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        let method = match route.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        methods[method] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fanfold",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The sessions of fanfold: list, read, search, recall, fork. Times are milliseconds since 1970 unless stated otherwise.",
        },
        "servers": [{ "url": PATH }],
        "paths": paths,
        "components": { "schemas": schemas() },
    })
}

fn operation(route: &Route) -> Value {
    let outside_body =
        route.parameters.iter().filter(|parameter| parameter.location != ParameterLocation::Body);
    let parameters: Vec<Value> = outside_body.map(parameter).collect();
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.description,
        "parameters": parameters,
        "responses": {
            "200": { "description": "Success", "content": content(route.answer) },
            "default": {
                "description": "An error, with a hint",
                "content": { "application/json": { "schema": reference("Error") } },
            },
        },
    });
    let mut fields = Map::new();
    for field in route.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Body) {
        let kind = json_type(field.kind);
        fields.insert(field.name.to_owned(), json!({ "type": kind, "description": field.description }));
    }
    if !fields.is_empty() {
        let schema = json!({ "type": "object", "properties": fields, "additionalProperties": false });
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let is_in_path = parameter.location == ParameterLocation::Path;
    json!({
        "name": parameter.name,
        "in": if is_in_path { "path" } else { "query" },
        "required": is_in_path,
        "description": parameter.description,
        "schema": { "type": json_type(parameter.kind) },
    })
}

fn json_type(kind: ParameterType) -> &'static str {
    match kind {
        ParameterType::Text => "string",
        ParameterType::Number => "integer",
    }
}

fn content(answer: ResponseShape) -> Value {
    match answer {
        ResponseShape::Shape(name) => json!({ "application/json": { "schema": reference(name) } }),
        ResponseShape::List(field, name) => {
            let list = json!({ "type": "array", "items": reference(name) });
            let mut fields = Map::new();
            fields.insert(field.to_owned(), list);
            if field == "messages" {
                fields.insert("total".to_owned(), json!({ "type": "integer" }));
            }
            json!({ "application/json": { "schema": object(&Value::Object(fields)) } })
        }
        ResponseShape::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An object with exactly these fields.
fn object(fields: &Value) -> Value {
    let names: Vec<&String> = fields.as_object().into_iter().flat_map(Map::keys).collect();
    json!({ "type": "object", "properties": fields, "required": names, "additionalProperties": false })
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer" });
    let text_or_none = json!({ "type": ["string", "null"] });
    let number_or_none = json!({ "type": ["integer", "null"] });
    let session = json!({
        "id": text, "title": text_or_none, "goal": text_or_none, "source": text, "format": text,
        "model": text_or_none, "parent": text_or_none, "relation": text_or_none, "root": text,
        "messages": number, "started_at": number, "updated_at": number, "ended_at": number_or_none,
        "end_reason": text_or_none,
    });
    let mut standing = session.clone();
    let more = json!({
        "tokens": number_or_none, "window": number_or_none, "reserve": number_or_none, "requests": number,
        "last_request": number_or_none, "as_it_came": text_or_none, "folds": number,
        "tokens_before_fold": number_or_none, "tokens_after_fold": number_or_none, "handles": number,
        "pins": { "type": "array", "items": number },
    });
    if let (Value::Object(standing), Value::Object(more)) = (&mut standing, more) {
        standing.extend(more);
    }
    let run = json!({ "type": "array", "items": number, "minItems": 2, "maxItems": 2 });
    let error = object(&json!({ "message": text, "hint": text }));
    json!({
        "Session": object(&session),
        "Standing": object(&standing),
        "Message": object(&json!({ "id": number, "position": number, "role": text, "at": number, "message": {} })),
        "Fold": object(&json!({
            "at": number, "number": number, "tokens_before": number, "tokens_after": number,
            "messages": { "type": "array", "items": run, "description": "First and last message of each run" },
            "handles": { "type": "array", "items": text },
        })),
        "Found": {
            "type": "object",
            "description": "See the page of the guide on search",
            "properties": { "mode": { "enum": ["discover", "scroll", "read", "browse"] }, "success": { "const": true } },
            "required": ["mode", "success"],
        },
        "Description": { "type": "object" },
        "Error": object(&json!({ "error": error })),
    })
}
