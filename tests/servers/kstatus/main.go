// Command kstatus prints the status that kstatus computes of each object of a List on standard input.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	var list unstructured.UnstructuredList
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		fail(err)
	}
	for i := range list.Items {
		result, err := status.Compute(&list.Items[i])
		if err != nil {
			fail(err)
		}
		fmt.Printf("%s\t%s\n", list.Items[i].GetName(), result.Status)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
