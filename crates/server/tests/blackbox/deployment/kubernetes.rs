//! docs/operations/kubernetes.yaml: the program takes what its migration job and its deployment set.

use std::fs;

use intake_test_support::{ServiceBuilder, TestDatabase, wait_for};
use yaml_rust2::{Yaml, YamlLoader};

use crate::deployment::operations::folder;
use crate::fixtures::program;

#[test]
fn the_manifests_for_kubernetes_start_the_service() {
    let text = fs::read_to_string(folder().join("kubernetes.yaml")).unwrap();
    let manifests = YamlLoader::load_from_str(&text).unwrap();
    let container = |kind: &str| {
        let manifest = manifests.iter().find(|manifest| manifest["kind"].as_str() == Some(kind)).unwrap();
        manifest["spec"]["template"]["spec"]["containers"][0].clone()
    };
    let kinds: Vec<_> = manifests.iter().map(|manifest| manifest["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Job", "Deployment", "Service", "PodDisruptionBudget"]);

    let database = TestDatabase::empty_and_durable();
    let secrets = tempfile::tempdir().unwrap();
    fs::write(secrets.path().join("service-url"), database.service.expose()).unwrap();
    fs::write(secrets.path().join("owner-url"), database.owner.expose()).unwrap();
    let configured = |container: &Yaml| -> ServiceBuilder {
        let mut builder = program();
        for pair in container["env"].as_vec().unwrap() {
            let [name, value] = ["name", "value"].map(|field| pair[field].as_str().unwrap());
            let value = match name {
                "INTAKE_HTTP_ADDR" | "INTAKE_ADMIN_ADDR" => "127.0.0.1:0".to_owned(),
                _ => value.replace("/run/intake", secrets.path().to_str().unwrap()),
            };
            builder = builder.setting(name, value);
        }
        builder
    };
    let job = container("Job");
    let arguments: Vec<_> = job["args"].as_vec().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let migrated = arguments.iter().fold(configured(&job), |builder, word| builder.argument(word)).run();
    assert!(migrated.status.success(), "{migrated:?}");
    let deployment = container("Deployment");
    let service = configured(&deployment).setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1").start();
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(deployment[probe]["httpGet"]["port"].as_str(), Some("admin"));
        let path = deployment[probe]["httpGet"]["path"].as_str().unwrap();
        wait_for("the probe", || service.probe(path).status == 200);
    }
}
