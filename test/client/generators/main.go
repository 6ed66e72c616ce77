// A client of oapi-codegen, made into the package `consumer/custody`.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"consumer/custody"
)

func clientOf(server string) *custody.ClientWithResponses {
	client, err := custody.NewClientWithResponses(server, custody.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))
		return nil
	}))
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	client, later := clientOf(os.Getenv("BASE_URL")), clientOf(os.Getenv("LATER_URL"))

	found, err := client.ListVaultsWithResponse(ctx, nil)
	check(err)
	vaults := found.JSON200.Data
	labels := []string{}
	for _, vault := range vaults {
		labels = append(labels, vault.Label)
	}

	hashes := map[string]bool{}
	limit, status := 100, custody.TransactionStatus("confirmed")
	params := custody.ListTransactionsParams{Limit: &limit, Status: &status}
	for {
		page, err := client.ListTransactionsWithResponse(ctx, vaults[0].Id, &params)
		check(err)
		for _, transaction := range page.JSON200.Data {
			hashes[transaction.Hash] = true
		}
		if page.JSON200.Pagination.NextCursor == nil {
			break
		}
		params.Cursor = page.JSON200.Pagination.NextCursor
	}

	created, err := client.CreateWebhookWithResponse(ctx, nil, custody.CreateWebhook{
		Url:               os.Getenv("WEBHOOK_URL"),
		EntityIds:         &[]string{"entity_a"},
		EventKinds:        []custody.EventKind{custody.EventKindVaultUpdated},
		NotificationEmail: "ops@example.com",
	})
	check(err)
	webhook := created.JSON201

	listed, err := client.ListWebhookDeliveriesWithResponse(ctx, os.Getenv("WEBHOOK_ID"), nil)
	check(err)
	deliveries := [][]any{}
	for _, one := range listed.JSON200.Data {
		deliveries = append(deliveries, []any{one.Status, one.Attempts[0].HttpStatus, one.NextAttemptAt})
	}

	absent, err := client.GetVaultWithResponse(ctx, "vault_absent")
	check(err)
	one := 1
	unknown, err := later.ListTransactionsWithResponse(ctx, vaults[0].Id, &custody.ListTransactionsParams{Limit: &one})
	check(err)
	gone, err := later.GetVaultWithResponse(ctx, "vault_absent")
	check(err)
	first := unknown.JSON200.Data[0]

	out, err := json.Marshal(map[string]any{
		"vaults":       labels,
		"transactions": len(hashes),
		"webhook":      []any{webhook.Status, webhook.Secret[:6], webhook.DisabledReason},
		"deliveries":   deliveries,
		"error":        []any{absent.ApplicationproblemJSON404.Status, absent.ApplicationproblemJSON404.Code},
		"later":        []any{first.Status, first.Amount, gone.ApplicationproblemJSON404.Code},
	})
	check(err)
	fmt.Println(string(out))
}
