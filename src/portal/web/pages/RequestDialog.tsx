/** The request of a delivery as it would be sent now, with code that verifies it. */
import { useQuery } from "@tanstack/react-query"
import { Tabs } from "radix-ui"
import type { PreparedRequest } from "../../../delivery/deliveries/RequestPreview.ts"
import { post } from "../api.ts"
import { Code, laidOut } from "../parts/Code.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { verificationCode } from "./verificationCode.ts"

export const RequestDialog = ({
  deliveryId,
  onClose,
  open
}: {
  readonly deliveryId: string
  readonly open: boolean
  readonly onClose: () => void
}) => {
  const { data, error, refetch } = useQuery({
    queryKey: ["request-preview", deliveryId],
    queryFn: () => post(`/deliveries/${deliveryId}/request-preview`),
    enabled: open,
    gcTime: 0
  })
  return (
    <Dialog
      title="Request and verification"
      lead="The request as it would be sent now, signed with your current secrets. Nothing is sent."
      open={open}
      onClose={onClose}
      wide
    >
      {data === undefined ? (
        error === null ? (
          <Loading />
        ) : (
          <Failure error={error} retry={() => void refetch()} />
        )
      ) : (
        <Shown request={data} />
      )}
    </Dialog>
  )
}

const Shown = ({ request: { body, headers, url } }: { readonly request: PreparedRequest }) => (
  <Tabs.Root defaultValue="request" className="tabs">
    <Tabs.List aria-label="Request and verification">
      <Tabs.Trigger value="request">Request</Tabs.Trigger>
      {verificationCode.map(({ name }) => (
        <Tabs.Trigger key={name} value={name}>
          {name}
        </Tabs.Trigger>
      ))}
    </Tabs.List>
    <Tabs.Content value="request">
      <Code
        title="Headers"
        text={[
          `POST ${new URL(url).pathname}${new URL(url).search}`,
          `host: ${new URL(url).host}`,
          ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
        ].join("\n")}
      />
      <Code title="Body as sent" text={body} />
      <Code title="Body, formatted" text={laidOut(body)} />
    </Tabs.Content>
    {verificationCode.map(({ name, text }) => (
      <Tabs.Content key={name} value={name}>
        <p className="hint">
          Verify the raw body before you parse it. During a rotation there are several signatures; one match is enough.
        </p>
        <Code title={name} text={text} asItIs />
      </Tabs.Content>
    ))}
  </Tabs.Root>
)
