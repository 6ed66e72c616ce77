/** An owner's actions on a webhook: test event and settings as buttons, the rest in a menu. */
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useNavigate } from "react-router"
import type { RotatedSecret, Webhook } from "../../../client/index.ts"
import { patch, postOnce, remove } from "../api.ts"
import { usePortalContext } from "../data.ts"
import { Button, LinkButton } from "../parts/Button.tsx"
import { Confirm } from "../parts/Confirm.tsx"
import { Dialog, Question } from "../parts/Dialog.tsx"
import { Menu } from "../parts/Menu.tsx"
import { notify } from "../parts/Notices.tsx"
import { Secret } from "../parts/Secret.tsx"
import { left, useNow } from "../parts/Time.tsx"
import { TestEvent } from "./TestEvent.tsx"
import { StartRecovery } from "./WebhookRecovery.tsx"

type Act = "rotate" | "retire" | "disable" | "enable" | "pause" | "resume" | "delete"

export const WebhookActions = ({ refresh, webhook }: { readonly webhook: Webhook; readonly refresh: () => Promise<unknown> }) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  const now = useNow(1_000)
  const { data: around } = usePortalContext()
  const [asked, setAsked] = useState<Act | null>(null)
  const [recovering, setRecovering] = useState(false)
  const [rotated, setRotated] = useState<RotatedSecret | null>(null)
  const path = `/v1/webhooks/${webhook.id}` as const
  const name = webhook.description === "" ? "this webhook" : `“${webhook.description}”`
  const hours = Math.round((around?.rotationGraceSeconds ?? 86_400) / 360) / 10
  const rotations = {
    rotate: {
      title: "Rotate the signing secret?",
      text: `The new secret is shown once. The previous secret stays valid for ${hours} hours, so that your endpoint can switch without a gap. Confirm your second factor.`,
      yes: "Rotate secret",
      body: undefined
    },
    retire: {
      title: "Retire earlier secrets now?",
      text: "A new secret is shown once, and all earlier ones expire at once. Your endpoint rejects deliveries until it uses the new secret; they are retried. Confirm your second factor.",
      yes: "Retire earlier secrets",
      body: { expirePrevious: "now" }
    }
  } as const
  const rotation = asked === "rotate" || asked === "retire" ? asked : null
  const setStatus = async (status: "ACTIVE" | "PAUSED" | "DISABLED") => {
    await patch(path, { status })
    await refresh()
    notify(
      status === "PAUSED"
        ? "Webhook paused"
        : status === "DISABLED"
          ? "Webhook disabled"
          : webhook.status === "PAUSED"
            ? "Webhook resumed"
            : "Webhook enabled"
    )
  }
  const questions = {
    disable: {
      title: `Disable ${name}?`,
      text: "Nothing is sent to it any more. All waiting deliveries will be canceled. Events are still recorded, but are not sent later automatically.",
      yes: "Disable webhook",
      danger: true,
      act: () => setStatus("DISABLED")
    },
    enable: {
      title: `Enable ${name}?`,
      text: "New events are sent to it from now on. Then choose “Recover missed events…” for what happened before.",
      yes: "Enable webhook",
      danger: false,
      act: () => setStatus("ACTIVE")
    },
    pause: {
      title: `Pause ${name}?`,
      text: "Deliveries wait until you resume it, for 31 days at most. No attempt is made or used up in the meantime.",
      yes: "Pause webhook",
      danger: false,
      act: () => setStatus("PAUSED")
    },
    resume: {
      title: `Resume ${name}?`,
      text: "All waiting deliveries are sent, oldest first.",
      yes: "Resume webhook",
      danger: false,
      act: () => setStatus("ACTIVE")
    },
    delete: {
      title: `Delete ${name}?`,
      text: "All waiting deliveries will be canceled. Past deliveries stay readable with their events. This cannot be undone.",
      yes: "Delete webhook",
      danger: true,
      act: async () => {
        await remove(path)
        await navigate("/webhooks")
        client.removeQueries({ queryKey: [path] })
        await client.invalidateQueries({ queryKey: ["/v1/webhooks"] })
        notify("Webhook deleted")
      }
    }
  } as const
  return (
    <>
      {webhook.status === "DISABLED" ? (
        <Button kind="main" onClick={() => setAsked("enable")}>
          Enable
        </Button>
      ) : null}
      {webhook.status === "PAUSED" ? (
        <Button kind="main" onClick={() => setAsked("resume")}>
          Resume
        </Button>
      ) : null}
      <TestEvent webhookId={webhook.id} />
      <LinkButton to={`/webhooks/${webhook.id}/edit`}>Edit</LinkButton>
      <Menu
        label="More actions"
        items={[
          { label: "Rotate secret", act: () => setAsked("rotate") },
          { label: "Retire earlier secrets now", act: () => setAsked("retire") },
          ...(webhook.status === "ACTIVE" ? [{ label: "Pause", act: () => setAsked("pause") }] : []),
          ...(webhook.status === "DISABLED" ? [] : [{ label: "Recover missed events…", act: () => setRecovering(true) }]),
          ...(webhook.status === "DISABLED" ? [] : [{ label: "Disable", act: () => setAsked("disable") }]),
          { label: "Delete", danger: true, act: () => setAsked("delete") }
        ]}
      />
      <StartRecovery webhookId={webhook.id} open={recovering} onClose={() => setRecovering(false)} />
      <Confirm
        {...rotations[rotation ?? "rotate"]}
        open={rotation !== null}
        onClose={() => setAsked(null)}
        act={async (confirmation) => {
          const { body } = rotations[rotation ?? "rotate"]
          setRotated(await postOnce(`${path}/rotate-secret`, crypto.randomUUID(), body, confirmation))
          await refresh()
        }}
      />
      {asked === null || asked === "rotate" || asked === "retire" ? null : (
        <Question {...questions[asked]} open onClose={() => setAsked(null)} />
      )}
      <Dialog title="New signing secret" open={rotated !== null} onClose={() => setRotated(null)} wide>
        {rotated === null ? null : (
          <Secret title="Secret" what="Signing secret" secret={rotated.secret}>
            <p className="hint">
              {rotated.previousSecretExpiresAt === null
                ? "All earlier secrets have expired."
                : `The previous secret stays valid for ${left(rotated.previousSecretExpiresAt, now)}.`}
            </p>
          </Secret>
        )}
        <div className="actions end">
          <Button kind="main" onClick={() => setRotated(null)}>
            I have stored it
          </Button>
        </div>
      </Dialog>
    </>
  )
}
