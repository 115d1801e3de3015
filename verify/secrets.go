package verify

import (
	"path"
	"strings"
)

// A secret is a file that is read for what it lets its reader do.
type secret struct {
	kind string
	// owners are the programs the file exists for: ssh reads its keys. A read by one of them weighs less.
	owners []string
	// project: it belongs to the project being worked on (.env); reading it is not out of the way.
	project bool
}

type secretPlace struct {
	path string // relative to the home; a trailing / means everything in it
	secret
}

var homeSecrets = []secretPlace{
	{".ssh/", secret{kind: "ssh-key", owners: []string{"ssh", "ssh-add", "ssh-agent", "ssh-keygen", "scp", "sftp", "git-remote-ssh", "sshd"}}},
	{".aws/credentials", secret{kind: "cloud-key", owners: []string{"aws", "terraform", "cdk"}}},
	{".aws/sso/cache/", secret{kind: "cloud-key", owners: []string{"aws"}}},
	{".azure/", secret{kind: "cloud-key", owners: []string{"az"}}},
	{".config/gcloud/", secret{kind: "cloud-key", owners: []string{"gcloud", "gsutil", "bq"}}},
	{".kube/config", secret{kind: "cloud-key", owners: []string{"kubectl", "helm", "k9s", "kubectx"}}},
	{".docker/config.json", secret{kind: "registry-key", owners: []string{"docker", "docker-buildx", "docker-compose", "podman", "buildah", "skopeo"}}},
	{".netrc", secret{kind: "password", owners: []string{"curl", "git-remote-https", "git-remote-http", "ftp", "heroku"}}},
	{".git-credentials", secret{kind: "password", owners: []string{"git", "git-credential-store"}}},
	{".config/git/credentials", secret{kind: "password", owners: []string{"git", "git-credential-store"}}},
	{".gnupg/", secret{kind: "gpg-key", owners: []string{"gpg", "gpg2", "gpg-agent", "keyboxd", "gpgsm", "gpgconf", "scdaemon", "dirmngr"}}},
	{".npmrc", secret{kind: "registry-key", owners: []string{"npm", "npx", "node", "pnpm", "yarn", "bun"}}},
	{".pypirc", secret{kind: "registry-key", owners: []string{"twine", "flit", "poetry"}}},
	{".cargo/credentials", secret{kind: "registry-key", owners: []string{"cargo"}}},
	{".cargo/credentials.toml", secret{kind: "registry-key", owners: []string{"cargo"}}},
	{".config/gh/hosts.yml", secret{kind: "token", owners: []string{"gh"}}},
	{".config/hub", secret{kind: "token", owners: []string{"hub"}}},
	{".config/op/", secret{kind: "password", owners: []string{"op"}}},
	{".password-store/", secret{kind: "password", owners: []string{"pass", "gpg"}}},
	{".local/share/keyrings/", secret{kind: "password", owners: []string{"gnome-keyring-daemon"}}},
	{".vault-token", secret{kind: "token", owners: []string{"vault"}}},
	{".terraform.d/credentials.tfrc.json", secret{kind: "token", owners: []string{"terraform", "tofu"}}},
	{".pgpass", secret{kind: "password", owners: []string{"psql", "pg_dump"}}},
	{".my.cnf", secret{kind: "password", owners: []string{"mysql", "mysqldump", "mariadb"}}},
	{".codex/auth.json", secret{kind: "assistant-key", owners: []string{"codex"}}},
	{".claude/.credentials.json", secret{kind: "assistant-key", owners: []string{"claude"}}},
	{".gemini/oauth_creds.json", secret{kind: "assistant-key", owners: []string{"gemini"}}},
	{".mozilla/firefox/", secret{kind: "browser"}},
	{".config/google-chrome/", secret{kind: "browser"}},
	{".config/chromium/", secret{kind: "browser"}},
	{".rye/", secret{kind: "rye", owners: []string{"rye"}}},
}

// secret tells whether a path holds a credential or key. It is asked for every open, so it looks at
// the last element first.
func (p *places) secret(name string) (secret, bool) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	switch base {
	case ".env", ".env.local", ".env.production", ".env.development", ".env.test", ".env.staging":
		return secret{kind: "env-file", project: true}, true
	case "shadow", "gshadow":
		if path.Dir(name) == "/etc" {
			return secret{kind: "password", owners: []string{"sudo", "su", "passwd", "login", "unix_chkpwd", "sshd"}}, true
		}
	case "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa":
		return secret{kind: "ssh-key", owners: homeSecrets[0].owners}, true
	}
	if strings.HasSuffix(base, ".kdbx") || strings.HasSuffix(base, "-service-account.json") {
		return secret{kind: "password"}, true
	}
	if strings.HasPrefix(name, "/etc/ssh/ssh_host_") && !strings.HasSuffix(base, ".pub") {
		return secret{kind: "ssh-key", owners: []string{"sshd"}}, true
	}
	rel, ok := p.inHome(name)
	if !ok || rel == "" || rel[0] != '.' {
		return secret{}, false
	}
	for _, s := range homeSecrets {
		if s.path == rel || s.path[len(s.path)-1] == '/' && strings.HasPrefix(rel, s.path) {
			return s.secret, !harmless(s.kind, base)
		}
	}
	return secret{}, false
}

// harmless tells the files in a key folder that are not keys.
func harmless(kind, base string) bool {
	switch kind {
	case "ssh-key":
		return strings.HasSuffix(base, ".pub") || strings.HasPrefix(base, "known_hosts") || base == "config" || base == "environment" || base == "rc" || base == "authorized_keys"
	case "gpg-key":
		return !strings.HasSuffix(base, ".key") && !strings.HasPrefix(base, "secring") && base != "trustdb.gpg"
	case "browser":
		switch base {
		case "Cookies", "Login Data", "cookies.sqlite", "logins.json", "key4.db", "Web Data", "Local State":
			return false
		}
		return true
	case "rye":
		return !strings.HasSuffix(base, ".key") && !strings.HasSuffix(base, "-key.pem")
	}
	return false
}
