// Writes down the Go types behind the built-in kinds: which fields they have, of which type, what is
// left out when it is empty, by which number it goes in the binary form, and how lists are merged. Run
// by make.py.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var roots = []any{
	core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.LimitRange{}, core.Namespace{}, core.Node{},
	core.PersistentVolumeClaim{}, core.PersistentVolume{}, core.Pod{}, core.ResourceQuota{}, core.Secret{},
	core.ServiceAccount{}, core.Service{}, core.Binding{}, core.PodTemplateSpec{},
	events.Event{}, authentication.SelfSubjectReview{}, authentication.TokenReview{}, authentication.TokenRequest{},
	authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
	authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{},
	autoscaling.Scale{}, batch.Job{}, networking.NetworkPolicy{}, policy.PodDisruptionBudget{}, policy.Eviction{},
	rbac.ClusterRoleBinding{}, rbac.ClusterRole{}, rbac.RoleBinding{}, rbac.Role{}, storage.StorageClass{},
	apiextensions.CustomResourceDefinition{}, scheduling.PriorityClass{}, coordination.Lease{},
	node.RuntimeClass{}, discovery.EndpointSlice{}, meta.DeleteOptions{}, meta.ObjectMeta{},
}

// Types that read and write themselves.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "!time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "!microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "!any",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "!quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "!intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "!any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "!any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "!orbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "!orarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "!orstrings",
}

// Above the fields of a type that the binary form leaves out.
const nowhere = "-"

var lines = map[string][]string{}

// core.Pod for k8s.io/api/core/v1.Pod.
func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	last := parts[len(parts)-1]
	if last == "v1" {
		last = parts[len(parts)-2]
	}
	return last + "." + t.Name()
}

func expression(t reflect.Type) string {
	if word, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		return word
	}
	if t.Name() != "" && t.PkgPath() != "" {
		note(t)
		return name(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + expression(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "!bytes"
		}
		return "[]" + expression(t.Elem())
	case reflect.Map:
		return "map[" + expression(t.Key()) + "]" + expression(t.Elem())
	}
	return t.Kind().String()
}

func note(t reflect.Type) {
	key := name(t)
	if _, known := lines[key]; known {
		return
	}
	lines[key] = nil
	if t.Kind() != reflect.Struct {
		switch t.Kind() {
		case reflect.Slice:
			lines[key] = []string{"= []" + expression(t.Elem())}
		case reflect.Map:
			lines[key] = []string{"= map[" + expression(t.Key()) + "]" + expression(t.Elem())}
		default:
			lines[key] = []string{"= " + t.Kind().String()}
		}
		return
	}
	fields := []string{}
	collect(t, "", "", &fields)
	sort.Strings(fields)
	lines[key] = fields
}

// Fields of an embedded type stand among those of the one that embeds it; messages name the former.
func collect(t reflect.Type, within, above string, fields *[]string) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag[0] == "-" {
			continue
		}
		number := number(field.Tag.Get("protobuf"))
		if field.Anonymous && tag[0] == "" {
			inside := above + number + "."
			if number == "" {
				inside = nowhere
			}
			collect(field.Type, within+"@"+field.Name, inside, fields)
			continue
		}
		flags := "-"
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				flags += "o"
			case "omitzero":
				flags += "z"
			}
		}
		if number != "" && above != nowhere {
			flags += ":" + above + number
		}
		line := tag[0] + within + " " + flags + " " + expression(field.Type)
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			line += " " + strategy
			if key := field.Tag.Get("patchMergeKey"); key != "" {
				line += " " + key
			}
		}
		*fields = append(*fields, line)
	}
}

// 3 for `bytes,3,opt,name=status`. Every number is below 256: the reader relies on it.
func number(tag string) string {
	words := strings.Split(tag, ",")
	if len(words) < 2 {
		return ""
	}
	if value, err := strconv.ParseUint(words[1], 10, 8); err != nil || value == 0 {
		panic(tag)
	}
	return words[1]
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "pairs" {
		pairs()
		return
	}
	for _, root := range roots {
		note(reflect.TypeOf(root))
	}
	note(reflect.TypeOf(apiextensions.JSONSchemaProps{}))
	keys := []string{}
	for key := range lines {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, key := range keys {
		fmt.Fprintln(out, key)
		for _, line := range lines[key] {
			fmt.Fprintln(out, " "+line)
		}
	}
}
