//! A container's environment: the image's variables, those of services, `envFrom`, `env`.
//!
//! Later ones win; each keeps the place where its name came up first. Must not know commands.

use std::collections::HashMap;
use std::fmt;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVarSource, Pod, Secret};

use crate::env::expansion::{expand, reference};
use crate::env::fields::field;
use crate::env::resources::resource_value;
use crate::env::{EnvError, Facts};
use crate::objects::Objects;

/// Variables in order. What the image brings is seen by the program, but not by `$(NAME)`.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: Vec<(String, String)>,
    places: HashMap<String, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    index: usize,
    declared: bool,
}

impl fmt::Debug for Environment {
    // Values may be secrets, which must not reach a log by accident.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

impl Environment {
    /// What the image brings.
    pub(crate) fn new(image: &[(String, String)]) -> Self {
        let mut environment = Self::default();
        for (name, value) in image {
            environment.put(name, value, false);
        }
        environment
    }

    /// Adds or replaces a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.put(name, value, true);
    }

    fn put(&mut self, name: &str, value: &str, declared: bool) {
        if let Some(place) = self.places.get_mut(name) {
            value.clone_into(&mut self.variables[place.index].1);
            place.declared |= declared;
        } else {
            let place = Place { index: self.variables.len(), declared };
            self.places.insert(name.to_owned(), place);
            self.variables.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The value of a variable that does not come from the image alone.
    pub(crate) fn declared(&self, name: &str) -> Option<&str> {
        let place = self.places.get(name).filter(|place| place.declared)?;
        Some(&self.variables[place.index].1)
    }

    /// All of them, in order, each name once.
    #[cfg(test)]
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// All of them, in order, each name once.
    pub(crate) fn into_variables(self) -> Vec<(String, String)> {
        self.variables
    }
}

/// The environment of a container. `services` are the variables that tell of services.
pub(crate) async fn environment<O: Objects>(
    pod: &Pod,
    container: &Container,
    image_env: &[(String, String)],
    services: &[(String, String)],
    facts: &Facts,
    objects: &O,
) -> Result<Environment, EnvError> {
    let mut environment = Environment::new(image_env);
    for (name, value) in services {
        environment.set(name, value);
    }
    let mut reader = Reader::new(pod.metadata.namespace.as_deref().unwrap_or_default(), objects);
    for source in container.env_from.iter().flatten() {
        for (name, value) in reader.all_of(source).await? {
            environment.set(&name, &value);
        }
    }
    for variable in container.env.iter().flatten() {
        let name = variable.name.as_str();
        let written = variable.value.as_deref().unwrap_or_default();
        let value =
            if let Some(source) = variable.value_from.as_ref().filter(|_| written.is_empty()) {
                match fixed(name, source, pod, container, facts)? {
                    Some(value) => Some(value),
                    None => reader.one_of(name, source).await?,
                }
            } else {
                let lookup =
                    |n: &str| environment.declared(n).map_or_else(|| reference(n), str::to_owned);
                Some(expand(written, lookup))
            };
        if let Some(value) = value {
            check(name, &value, "env")?;
            environment.set(name, &value);
        }
    }
    Ok(environment)
}

/// What the pod itself says; none where an object must be read for it.
fn fixed(
    name: &str,
    source: &EnvVarSource,
    pod: &Pod,
    container: &Container,
    facts: &Facts,
) -> Result<Option<String>, EnvError> {
    if let Some(selector) = &source.field_ref {
        return Ok(Some(field(selector, pod, facts)?));
    }
    if let Some(selector) = &source.resource_field_ref {
        return Ok(Some(resource_value(selector, pod, Some(container), &facts.allocatable)?));
    }
    if source.config_map_key_ref.is_none() && source.secret_key_ref.is_none() {
        return Err(EnvError::NoSource { variable: name.to_owned() });
    }
    Ok(None)
}

fn check(name: &str, value: &str, origin: &str) -> Result<(), EnvError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(EnvError::Name { name: name.to_owned(), origin: origin.to_owned() });
    }
    if value.contains('\0') {
        return Err(EnvError::Value {
            variable: name.to_owned(),
            origin: origin.to_owned(),
            problem: "holds a zero byte",
        });
    }
    Ok(())
}

fn text(name: &str, bytes: &[u8], origin: &str) -> Result<String, EnvError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EnvError::Value {
        variable: name.to_owned(),
        origin: origin.to_owned(),
        problem: "is not UTF-8 text",
    })?;
    Ok(text.to_owned())
}

/// Reads each object at most once for a container.
struct Reader<'a, O> {
    namespace: &'a str,
    objects: &'a O,
    config_maps: HashMap<String, Option<ConfigMap>>,
    secrets: HashMap<String, Option<Secret>>,
}

impl<'a, O: Objects> Reader<'a, O> {
    fn new(namespace: &'a str, objects: &'a O) -> Self {
        Self { namespace, objects, config_maps: HashMap::new(), secrets: HashMap::new() }
    }

    async fn config_map(
        &mut self,
        name: &str,
        optional: bool,
    ) -> Result<Option<&ConfigMap>, EnvError> {
        if !self.config_maps.contains_key(name) {
            let found = self.objects.config_map(self.namespace, name).await?;
            self.config_maps.insert(name.to_owned(), found);
        }
        match self.config_maps.get(name).and_then(Option::as_ref) {
            None if !optional => Err(EnvError::NoConfigMap { name: name.to_owned() }),
            found => Ok(found),
        }
    }

    async fn secret(&mut self, name: &str, optional: bool) -> Result<Option<&Secret>, EnvError> {
        if !self.secrets.contains_key(name) {
            let found = self.objects.secret(self.namespace, name).await?;
            self.secrets.insert(name.to_owned(), found);
        }
        match self.secrets.get(name).and_then(Option::as_ref) {
            None if !optional => Err(EnvError::NoSecret { name: name.to_owned() }),
            found => Ok(found),
        }
    }

    /// Every variable of an `envFrom` entry.
    async fn all_of(&mut self, source: &EnvFromSource) -> Result<Vec<(String, String)>, EnvError> {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut variables = Vec::new();
        if let Some(wanted) = &source.config_map_ref {
            let origin = format!("ConfigMap {}/{}", self.namespace, wanted.name);
            let found = self.config_map(&wanted.name, wanted.optional.unwrap_or(false)).await?;
            for (key, value) in found.and_then(|c| c.data.as_ref()).into_iter().flatten() {
                let name = format!("{prefix}{key}");
                check(&name, value, &origin)?;
                variables.push((name, value.clone()));
            }
        } else if let Some(wanted) = &source.secret_ref {
            let origin = format!("Secret {}/{}", self.namespace, wanted.name);
            let found = self.secret(&wanted.name, wanted.optional.unwrap_or(false)).await?;
            for (key, value) in found.and_then(|s| s.data.as_ref()).into_iter().flatten() {
                let name = format!("{prefix}{key}");
                let value = text(&name, &value.0, &origin)?;
                check(&name, &value, &origin)?;
                variables.push((name, value));
            }
        }
        Ok(variables)
    }

    /// The value of a key of a config map or secret; none where it is optional and not there.
    async fn one_of(
        &mut self,
        variable: &str,
        source: &EnvVarSource,
    ) -> Result<Option<String>, EnvError> {
        let namespace = self.namespace;
        let (object, wanted, optional, value) = if let Some(wanted) = &source.config_map_key_ref {
            let optional = wanted.optional.unwrap_or(false);
            let found = self.config_map(&wanted.name, optional).await?;
            let Some(found) = found else { return Ok(None) };
            let value = found.data.as_ref().and_then(|d| d.get(&wanted.key)).cloned();
            ("ConfigMap", (&wanted.name, &wanted.key), optional, value)
        } else if let Some(wanted) = &source.secret_key_ref {
            let optional = wanted.optional.unwrap_or(false);
            let found = self.secret(&wanted.name, optional).await?;
            let Some(found) = found else { return Ok(None) };
            let origin = format!("Secret {namespace}/{}", wanted.name);
            let bytes = found.data.as_ref().and_then(|d| d.get(&wanted.key));
            let value = bytes.map(|b| text(variable, &b.0, &origin)).transpose()?;
            ("Secret", (&wanted.name, &wanted.key), optional, value)
        } else {
            return Err(EnvError::NoSource { variable: variable.to_owned() });
        };
        if value.is_none() && !optional {
            return Err(EnvError::NoKey {
                object,
                namespace: namespace.to_owned(),
                name: wanted.0.clone(),
                key: wanted.1.clone(),
            });
        }
        Ok(value)
    }
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
