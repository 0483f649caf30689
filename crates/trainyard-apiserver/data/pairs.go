// Writes down objects of every built-in kind in both forms, binary and JSON: one with every field set,
// one with hardly any. Run by make.py; the tests of the binary form replay them.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

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
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var adders = []func(*runtime.Scheme) error{
	authentication.AddToScheme, authorization.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme,
	coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme,
	networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme,
	scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
}

// Makes up values, each another.
type filler struct {
	made int64
	// How many schemas we are in: they hold one another.
	schemas int
}

func (f *filler) next() int64 {
	f.made++
	return f.made
}

func (f *filler) special(value reflect.Value) bool {
	n := f.next()
	switch place := value.Addr().Interface().(type) {
	case *resource.Quantity:
		texts := []string{"1", "500m", "1Gi", "2k", "1500m", "-3", "0.1", "1e3"}
		*place = resource.MustParse(texts[n%int64(len(texts))])
		_ = place.String()
	case *meta.Time:
		*place = meta.Unix(1_700_000_000+n, 0)
	case *meta.MicroTime:
		*place = meta.NewMicroTime(time.Unix(1_700_000_000+n, 1000*n).UTC())
	case *meta.FieldsV1:
		place.Raw = []byte(`{"f:metadata":{"f:labels":{}}}`)
	case *intstr.IntOrString:
		if n%2 == 0 {
			*place = intstr.FromString(fmt.Sprintf("%d%%", n))
		} else {
			*place = intstr.FromInt32(int32(-n))
		}
	case *runtime.RawExtension:
		place.Raw = []byte(`{"a":[1,null]}`)
	case *apiextensions.JSON:
		place.Raw = [][]byte{[]byte(`{"a":[1.5,null,"b"]}`), []byte(`null`), []byte(`"c"`)}[n%3]
	case *apiextensions.JSONSchemaPropsOrBool:
		if place.Allows = n%3 == 0; n%3 == 1 {
			place.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
			place.Allows = true
		}
	case *apiextensions.JSONSchemaPropsOrArray:
		if n%2 == 0 {
			place.Schema = &apiextensions.JSONSchemaProps{Type: "integer"}
		} else {
			place.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "a"}, {Type: "b"}}
		}
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if n%2 == 0 {
			place.Schema = &apiextensions.JSONSchemaProps{Type: "number"}
		} else {
			place.Property = []string{"x", "y"}
		}
	case *meta.TypeMeta:
	default:
		return false
	}
	return true
}

func (f *filler) fill(value reflect.Value) {
	if f.special(value) {
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString([]string{"word-%d", "wörd %d", "w\"%d\n"}[f.made%3])
		value.SetString(fmt.Sprintf(value.String(), f.made))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64, reflect.Int:
		value.SetInt(f.made * (1 - 2*(f.made%2)))
	case reflect.Float64:
		value.SetFloat(float64(f.made) / 4)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.fill(value.Elem())
	case reflect.Slice:
		f.slice(value)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for range 2 {
			key := reflect.New(value.Type().Key()).Elem()
			key.SetString(fmt.Sprintf("key-%d", f.next()))
			item := reflect.New(value.Type().Elem()).Elem()
			f.fill(item)
			value.SetMapIndex(key, item)
		}
	case reflect.Struct:
		f.fields(value)
	}
}

func (f *filler) slice(value reflect.Value) {
	if value.Type().Elem().Kind() == reflect.Uint8 {
		value.SetBytes([]byte{0, byte(f.made), 255, 'a'})
		return
	}
	length := 2
	if value.Type().Elem().Kind() == reflect.Struct {
		length = 1
	}
	value.Set(reflect.MakeSlice(value.Type(), length, length))
	for at := range length {
		f.fill(value.Index(at))
	}
}

func (f *filler) fields(value reflect.Value) {
	if _, ok := value.Addr().Interface().(*apiextensions.JSONSchemaProps); ok {
		if f.schemas == 2 {
			return
		}
		f.schemas++
		defer func() { f.schemas-- }()
	}
	for at := range value.NumField() {
		if value.Type().Field(at).IsExported() {
			f.fill(value.Field(at))
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func pairs() {
	scheme := runtime.NewScheme()
	for _, add := range adders {
		check(add(scheme))
	}
	binary := protobuf.NewSerializer(scheme, scheme)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, root := range roots {
		for _, whole := range []bool{true, false} {
			value := reflect.New(reflect.TypeOf(root))
			object, ok := value.Interface().(runtime.Object)
			if !ok {
				continue
			}
			if whole {
				(&filler{}).fill(value.Elem())
			} else if named, ok := object.(meta.Object); ok {
				named.SetName("a")
			}
			kinds, _, err := scheme.ObjectKinds(object)
			check(err)
			object.GetObjectKind().SetGroupVersionKind(kinds[0])
			var encoded bytes.Buffer
			check(binary.Encode(object, &encoded))
			line, err := json.Marshal(map[string]any{"binary": encoded.Bytes(), "object": object})
			check(err)
			fmt.Fprintln(out, string(line))
		}
	}
}
