/** The page after the creation of a webhook: its secret, shown once, code that verifies, and a test event. */
import { Tabs } from "radix-ui"
import type { WebhookWithSecret } from "../../../client/index.ts"
import { LinkButton } from "../parts/Button.tsx"
import { Code } from "../parts/Code.tsx"
import { Page, Section } from "../parts/Page.tsx"
import { Secret } from "../parts/Secret.tsx"
import { TestEvent } from "./TestEvent.tsx"
import { tryLocally, verificationCode } from "./verificationCode.ts"
import { webhookName } from "./Webhooks.tsx"

export const WebhookCreated = ({ webhook }: { readonly webhook: WebhookWithSecret }) => (
  <Page title="Webhook created" back={["/webhooks", "Webhooks"]} lead={webhookName(webhook)}>
    <ol className="steps">
      <li>
        <Secret title="Store the signing secret" what="Signing secret" secret={webhook.secret}>
          <p className="hint">Your endpoint uses it to verify that a request comes from this service. If you lose it, rotate it.</p>
        </Secret>
      </li>
      <li>
        <Section title="Verify what you receive" lead="Verify the raw body before you parse it.">
          <Tabs.Root defaultValue={verificationCode[0].name} className="tabs">
            <Tabs.List aria-label="Language">
              {verificationCode.map(({ name }) => (
                <Tabs.Trigger key={name} value={name}>
                  {name}
                </Tabs.Trigger>
              ))}
              <Tabs.Trigger value="curl">curl</Tabs.Trigger>
            </Tabs.List>
            {verificationCode.map(({ name, text }) => (
              <Tabs.Content key={name} value={name}>
                <Code title={name} text={text} asItIs />
              </Tabs.Content>
            ))}
            <Tabs.Content value="curl">
              <p className="hint">Sends a signed event to a server on your machine, so that you can try your code before it is public.</p>
              <Code title="curl" text={tryLocally} asItIs />
            </Tabs.Content>
          </Tabs.Root>
        </Section>
      </li>
      <li>
        <Section title="Send a test event" lead="Your endpoint receives a signed event of the kind that you choose.">
          <div className="actions">
            <TestEvent webhookId={webhook.id} main />
            <LinkButton to={`/webhooks/${webhook.id}`}>I have stored the secret</LinkButton>
          </div>
        </Section>
      </li>
    </ol>
  </Page>
)
