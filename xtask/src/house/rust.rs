//! What is counted in the syntax of Rust.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Expr, ExprLit, Field, File, ImplItemFn, ItemFn, Lit, Meta, ReturnType, Signature,
    TraitItemFn, Type, Variant, Visibility,
    visit::{self, Visit},
};

use super::sources::Source;

/// A function.
pub(super) struct Function {
    pub name: String,
    /// Of its file.
    pub path: String,
    /// From its signature to its end.
    pub lines: usize,
}

/// A comment of more words says something of its own.
const ECHO_WORDS: usize = 3;

/// The longest of functions that may be shards of another, lines between the braces.
const SHARD_LINES: usize = 3;

/// What was found in all sources.
#[derive(Default)]
pub(super) struct RustCounts {
    pub functions: Vec<Function>,
    /// Tuples of more than two parts in public fields and results.
    pub tuples: usize,
    /// Comments of few words, each of which is in the name.
    pub echoes: usize,
    /// How often each name stands in the code.
    names: BTreeMap<String, usize>,
    /// Functions of few lines.
    short: Vec<String>,
    path: String,
}

impl RustCounts {
    /// Of these sources.
    ///
    /// # Errors
    /// One is not Rust.
    pub(super) fn of(product: &[Source]) -> Result<Self> {
        let mut counts = Self::default();
        for source in product {
            let file: File = syn::parse_file(&source.text)
                .with_context(|| format!("cannot parse {}", source.path))?;
            counts.path.clone_from(&source.path);
            counts.visit_file(&file);
            let tokens: TokenStream = source.text.parse().unwrap_or_default();
            counts.count_names(tokens);
        }
        Ok(counts)
    }

    /// Functions of few lines whose names stand in the code twice: where they are, and one call.
    pub(super) fn shards(&self) -> usize {
        self.short.iter().filter(|name| self.names.get(*name) == Some(&2)).count()
    }

    fn count_names(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => *self.names.entry(name.to_string()).or_default() += 1,
                TokenTree::Group(group) => self.count_names(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn function(&mut self, signature: &Signature, body: &syn::Block, attributes: &[Attribute]) {
        let braces = &body.brace_token.span;
        let (open, end) = (braces.open().start().line, braces.close().end().line);
        let name = signature.ident.to_string();
        self.comment(attributes, &name);
        let inner = end.saturating_sub(open).saturating_sub(1);
        if inner <= SHARD_LINES {
            self.short.push(name.clone());
        }
        let lines = end.saturating_sub(signature.fn_token.span.start().line) + 1;
        self.functions.push(Function { name, path: self.path.clone(), lines });
    }

    fn result(&mut self, visibility: &Visibility, signature: &Signature) {
        if let (false, ReturnType::Type(_, result)) = (is_private(visibility), &signature.output) {
            self.tuples += large_tuples(result);
        }
    }

    /// Counts the comment of `name` if it says nothing else.
    fn comment(&mut self, attributes: &[Attribute], name: &str) {
        let lines: Vec<String> = attributes.iter().filter_map(text).collect();
        let words = lines.join(" ").to_lowercase();
        let mut words: Vec<&str> = words.split(|c: char| !c.is_alphanumeric()).collect();
        words.retain(|word| !word.is_empty() && !["a", "an", "the", "its", "of"].contains(word));
        let name = name.to_lowercase();
        let repeats = words.iter().all(|word| name.contains(word.trim_end_matches('s')));
        if !words.is_empty() && words.len() <= ECHO_WORDS && repeats {
            self.echoes += 1;
        }
    }
}

impl Visit<'_> for RustCounts {
    fn visit_item_fn(&mut self, item: &ItemFn) {
        self.function(&item.sig, &item.block, &item.attrs);
        self.result(&item.vis, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        self.function(&item.sig, &item.block, &item.attrs);
        self.result(&item.vis, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &TraitItemFn) {
        self.comment(&item.attrs, &item.sig.ident.to_string());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_field(&mut self, field: &Field) {
        if let Some(name) = &field.ident {
            self.comment(&field.attrs, &name.to_string());
        }
        if !is_private(&field.vis) {
            self.tuples += large_tuples(&field.ty);
        }
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &Variant) {
        self.comment(&variant.attrs, &variant.ident.to_string());
        visit::visit_variant(self, variant);
    }
}

fn is_private(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Inherited)
}

/// Tuples of more than two parts in a type.
fn large_tuples(of: &Type) -> usize {
    struct Tuples(usize);
    impl Visit<'_> for Tuples {
        fn visit_type_tuple(&mut self, tuple: &syn::TypeTuple) {
            self.0 += usize::from(tuple.elems.len() > 2);
            visit::visit_type_tuple(self, tuple);
        }
    }
    let mut found = Tuples(0);
    found.visit_type(of);
    found.0
}

/// The line of a doc comment.
fn text(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| text.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> RustCounts {
        let source = Source { path: "src/cli/x.rs".into(), text: text.into() };
        RustCounts::of(&[source]).unwrap()
    }

    #[test]
    fn shards_are_short_and_called_once() {
        let text = "fn once() -> u8 {\n    1\n}\nfn twice() -> u8 {\n    2\n}\n\
                    fn all() -> u8 {\n    once()\n        + twice()\n        + twice()\n        \
                    + 1\n}\n";
        let found = counts(text);
        assert_eq!((found.shards(), found.functions.len()), (1, 3));
        assert_eq!(found.functions[2].lines, 6);
    }

    #[test]
    fn tuples_count_where_others_see_them() {
        let text = "pub struct S {\n    pub a: Vec<(u8, u8, u8)>,\n    b: (u8, u8, u8),\n}\n\
                    pub fn f() -> (u8, u8) { (1, 2) }\nfn g() -> (u8, u8, u8) { (1, 2, 3) }\n\
                    pub(crate) fn h() -> Option<(u8, u8, u8)> { None }\n";
        assert_eq!(counts(text).tuples, 2);
    }

    #[test]
    fn a_comment_that_says_the_name_again_is_an_echo() {
        let text = "struct S {\n    /// The name.\n    name: u8,\n    /// Bytes.\n    \
                    size: u8,\n}\n/// The start times.\nfn start_times() {}\n";
        assert_eq!(counts(text).echoes, 2);
    }
}
