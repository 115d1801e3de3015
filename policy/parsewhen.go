package policy

import (
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const maxNeedle = 1024 // bytes of a body_contains text

func (p *parser) condition(c *conditions, key string, k, v *yaml.Node) (err error) {
	switch key {
	case "domains":
		return each(v, &c.head, inDomains, domain)
	case "methods":
		return each(v, &c.head, hasMethod, token)
	case "paths":
		return each(v, &c.head, hasPath, pathPattern)
	case "header_present":
		return each(v, &c.head, hasHeader, token)
	}
	p.b.needs.body = true
	switch key {
	case "body_larger_than":
		c.larger, err = size(v)
	case "body_contains":
		err = p.contains(c, v)
	case "body_matches":
		err = p.patterns(c, v)
	case "secrets":
		err = p.secrets(c, v)
	case "model_missing":
		p.b.needs.json = true
		c.modelMissing, err = boolean(v)
	case "models":
		p.b.needs.json = true
		c.models, err = namePatterns(v)
	case "tools":
		p.b.needs.json = true
		c.tools, err = namePatterns(v)
	case "cel":
		p.b.needs.json = true
		p.secretNeedles() // the expression may ask
		err = p.cel(c, v)
	default:
		err = bad(k, "unknown condition %q", key)
	}
	return err
}

// each adds one test over a list of checked texts.
func each(v *yaml.Node, tests *[]func(*facts) bool, test func([]string) func(*facts) bool, check func(*yaml.Node) (string, error)) error {
	nodes, err := list(v)
	if err != nil {
		return err
	}
	var texts []string
	for _, n := range nodes {
		s, err := check(n)
		if err != nil {
			return err
		}
		texts = append(texts, s)
	}
	*tests = append(*tests, test(texts))
	return nil
}

func domain(n *yaml.Node) (string, error) {
	s := strings.ToLower(n.Value)
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") {
		return "", bad(n, "%q is not a domain (write example.com: subdomains are included)", n.Value)
	}
	return s, nil
}

func token(n *yaml.Node) (string, error) {
	if !regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$").MatchString(n.Value) {
		return "", bad(n, "%q is not an HTTP token", n.Value)
	}
	return n.Value, nil
}

func pathPattern(n *yaml.Node) (string, error) {
	if !strings.HasPrefix(n.Value, "/") && !strings.HasPrefix(n.Value, "*") {
		return "", bad(n, "path %q begins with neither / nor *", n.Value)
	}
	return n.Value, nil
}

func namePatterns(v *yaml.Node) ([]string, error) {
	nodes, err := list(v)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range nodes {
		if _, err := path.Match(n.Value, ""); err != nil {
			return nil, bad(n, "pattern %q: %v", n.Value, err)
		}
		out = append(out, n.Value)
	}
	return out, nil
}

func boolean(n *yaml.Node) (*bool, error) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return nil, bad(n, "neither true nor false")
	}
	b := strings.EqualFold(n.Value, "true")
	return &b, nil
}

// size is a number of bytes, with a unit of 1000 (kB, MB) or 1024 (KiB, MiB).
func size(n *yaml.Node) (int64, error) {
	s, err := text(n)
	if err != nil {
		return 0, err
	}
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if num, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = strings.TrimSpace(num), u.bytes
			break
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 || v > math.MaxInt64/unit {
		return 0, bad(n, "%q is not a size (2MB, 512KiB, 4096)", n.Value)
	}
	return v * unit, nil
}

func (p *parser) contains(c *conditions, v *yaml.Node) error {
	nodes, err := list(v)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if len(n.Value) > maxNeedle {
			return bad(n, "text is longer than %d bytes", maxNeedle)
		}
		i, ok := p.texts[n.Value]
		if !ok {
			i = len(p.needles)
			p.texts[n.Value] = i
			p.needles = append(p.needles, needle{text: []byte(n.Value)})
		}
		c.contains = append(c.contains, i)
	}
	return nil
}

func (p *parser) patterns(c *conditions, v *yaml.Node) error {
	nodes, err := list(v)
	if err != nil {
		return err
	}
	c.firstPattern = p.npat
	for _, n := range nodes {
		pat, err := newPattern(n.Value)
		if err != nil {
			return bad(n, "pattern: %v", err)
		}
		c.patterns = append(c.patterns, pat)
		p.prefix = max(p.prefix, len(pat.prefix))
		p.npat++
	}
	return nil
}

func (p *parser) secretNeedles() {
	if p.kinds != nil {
		return
	}
	p.kinds = map[string][]int{}
	for _, d := range detectors() {
		p.kinds[d.kind] = append(p.kinds[d.kind], len(p.needles))
		p.needles = append(p.needles, needle{text: []byte(d.prefix), secret: &d})
	}
}

func (p *parser) secrets(c *conditions, v *yaml.Node) error {
	nodes, err := list(v)
	if err != nil {
		return err
	}
	p.secretNeedles()
	for _, n := range nodes {
		kinds := []string{n.Value}
		if n.Value == "any" {
			kinds = secretKinds()
		}
		for _, kind := range kinds {
			if p.kinds[kind] == nil {
				return bad(n, "no detector for %q; there are any, %s", kind, strings.Join(secretKinds(), ", "))
			}
			c.secrets = append(c.secrets, p.kinds[kind]...)
		}
	}
	slices.Sort(c.secrets)
	return nil
}

func (p *parser) cel(c *conditions, v *yaml.Node) error {
	s, err := text(v)
	if err != nil {
		return err
	}
	env, err := celEnv()
	if err != nil {
		return bad(v, "cel: %v", err)
	}
	prog, col, err := compileCEL(env, s)
	if err != nil {
		return bad(v, "cel, at its column %d: %v", col, err)
	}
	c.cel = prog
	return nil
}
