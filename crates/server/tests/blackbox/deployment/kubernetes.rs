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
    assert_eq!(kinds, ["Job", "Deployment", "NetworkPolicy", "Service", "PodDisruptionBudget"]);

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

#[test]
fn the_delivery_for_kubernetes_is_one_that_the_program_knows() {
    let text = fs::read_to_string(folder().join("kubernetes-deliver.yaml")).unwrap();
    let container = YamlLoader::load_from_str(&text).unwrap()[0]["spec"]["template"]["spec"]["containers"][0].clone();
    let database = TestDatabase::durable();
    let mounted = tempfile::tempdir().unwrap();
    fs::write(mounted.path().join("reader-url"), database.service.expose()).unwrap();
    fs::write(mounted.path().join("secrets"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLswMfKQ9r8GKYqo=\n").unwrap();
    let here = |value: &str| {
        let place = mounted.path().to_str().unwrap();
        value.replace("/run/intake", place).replace("/state", place).replace("0.0.0.0:9465", "127.0.0.1:0")
    };
    let mut builder = program();
    for pair in container["env"].as_vec().unwrap() {
        let [name, value] = ["name", "value"].map(|field| pair[field].as_str().unwrap());
        builder = builder.setting(name, here(value));
    }
    let arguments: Vec<_> =
        container["args"].as_vec().unwrap().iter().map(|word| here(word.as_str().unwrap())).collect();
    let output = arguments.iter().fold(builder, |builder, word| builder.argument(word)).run();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`intake migrate --reader-role NAME` lets a role read"), "{said}");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"].as_str(), Some("/livez"));
}

#[test]
fn in_kubernetes_only_named_namespaces_reach_the_pods_and_only_proxies_are_trusted() {
    let text = fs::read_to_string(folder().join("kubernetes.yaml")).unwrap();
    let manifests = YamlLoader::load_from_str(&text).unwrap();
    let of_kind = |kind: &str| manifests.iter().find(|manifest| manifest["kind"].as_str() == Some(kind)).unwrap();
    let (deployment, policy) = (of_kind("Deployment"), of_kind("NetworkPolicy"));
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], labels, "the policy is for the pods");
    assert_eq!(policy["spec"]["policyTypes"][0].as_str(), Some("Ingress"));
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let ports: Vec<_> = container["ports"].as_vec().unwrap().iter().map(|port| port["name"].as_str()).collect();
    let rules = policy["spec"]["ingress"].as_vec().unwrap();
    let opened: Vec<_> = rules.iter().map(|rule| rule["ports"][0]["port"].as_str()).collect();
    assert_eq!(opened, ports, "each port has a rule of its own");
    for rule in rules {
        let namespace = &rule["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"];
        assert!(namespace.as_str().is_some() && rule["ports"].as_vec().unwrap().len() == 1, "{rule:?}");
    }
    let settings = container["env"].as_vec().unwrap();
    let trusted = settings.iter().find(|pair| pair["name"].as_str() == Some("INTAKE_TRUSTED_PROXIES")).unwrap();
    for address in trusted["value"].as_str().unwrap().split(',') {
        assert!(address.parse::<std::net::IpAddr>().is_ok(), "{address} is no address of one proxy");
    }
}
