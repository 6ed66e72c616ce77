/** A client of openapi-generator for Java. */
import com.google.gson.GsonBuilder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.DeliveriesApi;
import org.openapitools.client.api.VaultsApi;
import org.openapitools.client.api.WebhooksApi;
import org.openapitools.client.model.CreateWebhook;
import org.openapitools.client.model.Delivery;
import org.openapitools.client.model.EventKind;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.Transaction;
import org.openapitools.client.model.TransactionPage;
import org.openapitools.client.model.TransactionStatus;
import org.openapitools.client.model.Vault;
import org.openapitools.client.model.WebhookWithSecret;

public class Main {
  static ApiClient clientOf(String url) {
    ApiClient client = new ApiClient().setBasePath(url);
    client.setBearerToken(System.getenv("API_KEY"));
    return client;
  }

  static Problem problem(ApiClient client) throws Exception {
    try {
      new VaultsApi(client).getVault("vault_absent").execute();
    } catch (ApiException error) {
      return Problem.fromJson(error.getResponseBody());
    }
    throw new AssertionError("an absent vault was found");
  }

  public static void main(String[] given) throws Exception {
    ApiClient client = clientOf(System.getenv("BASE_URL"));
    ApiClient later = clientOf(System.getenv("LATER_URL"));
    VaultsApi reads = new VaultsApi(client);

    List<Vault> vaults = reads.listVaults().execute().getData();
    String vaultId = vaults.get(0).getId();
    List<String> labels = new ArrayList<>();
    for (Vault vault : vaults) labels.add(vault.getLabel());

    Set<String> hashes = new HashSet<>();
    String cursor = null;
    do {
      TransactionPage page =
          reads.listTransactions(vaultId).limit(100).cursor(cursor).status(TransactionStatus.CONFIRMED).execute();
      for (Transaction transaction : page.getData()) hashes.add(transaction.getHash());
      cursor = page.getPagination().getNextCursor();
    } while (cursor != null);

    WebhookWithSecret webhook =
        new WebhooksApi(client)
            .createWebhook(
                new CreateWebhook()
                    .url(java.net.URI.create(System.getenv("WEBHOOK_URL")))
                    .entityIds(Set.of("entity_a"))
                    .eventKinds(Set.of(EventKind.VAULT_UPDATED))
                    .notificationEmail("ops@example.com"))
            .execute();

    List<Object> deliveries = new ArrayList<>();
    for (Delivery one :
        new DeliveriesApi(client).listWebhookDeliveries(System.getenv("WEBHOOK_ID")).execute().getData())
      deliveries.add(Arrays.asList(one.getStatus(), one.getAttempts().get(0).getHttpStatus(), one.getNextAttemptAt()));

    Problem absent = problem(client);
    Transaction unknown =
        new VaultsApi(later).listTransactions(vaultId).limit(1).execute().getData().get(0);

    Map<String, Object> out = new LinkedHashMap<>();
    out.put("vaults", labels);
    out.put("transactions", hashes.size());
    out.put("webhook", Arrays.asList(webhook.getStatus(), webhook.getSecret().substring(0, 6), webhook.getDisabledReason()));
    out.put("deliveries", deliveries);
    out.put("error", Arrays.asList(absent.getStatus(), absent.getCode()));
    out.put("later", Arrays.asList(unknown.getStatus(), unknown.getAmount(), problem(later).getCode()));
    System.out.println(new GsonBuilder().serializeNulls().create().toJson(out));
  }
}
