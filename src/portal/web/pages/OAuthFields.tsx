/** The OAuth client credentials of a webhook, whose stored secret is not shown. C-12. */
import type { ClientAuthentication } from "../../../client/index.ts"
import { Choices, TextField } from "../parts/Field.tsx"

/** Client credentials in the form. Empty texts stand for none; a null secret for the stored one. */
export interface DraftOAuth {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string | null
  readonly scope: string | null
  readonly audience: string | null
  readonly clientAuthentication: ClientAuthentication
}

const EMPTY: DraftOAuth = { tokenUrl: "", clientId: "", clientSecret: "", scope: null, audience: null, clientAuthentication: "basic" }

export const OAuthFields = ({
  errorOf,
  isStored,
  oauth,
  onOAuth
}: {
  readonly oauth: DraftOAuth | null
  readonly onOAuth: (oauth: DraftOAuth | null) => void
  /** Whether a secret is stored. */
  readonly isStored: boolean
  readonly errorOf: (field: string) => string | undefined
}) => {
  const set = (change: Partial<DraftOAuth>) => onOAuth({ ...EMPTY, ...oauth, ...change })
  return (
    <>
      <Choices
        legend="Access token"
        choices={[
          {
            value: "oauth",
            label: "Get a token with OAuth client credentials",
            hint: "Every request carries it, for an API gateway in front of the endpoint."
          }
        ]}
        chosen={oauth === null ? [] : ["oauth"]}
        onChosen={(chosen) => onOAuth(chosen.length === 0 ? null : { ...EMPTY, clientSecret: isStored ? null : "" })}
        error={oauth === null ? errorOf("oauth") : undefined}
      />
      {oauth === null ? null : (
        <>
          <TextField
            label="Token URL"
            type="url"
            required
            placeholder="https://login.example.com/oauth2/token"
            value={oauth.tokenUrl}
            onValue={(tokenUrl) => set({ tokenUrl })}
            error={errorOf("oauth.tokenUrl")}
          />
          <TextField
            label="Client id"
            required
            autoComplete="off"
            spellCheck={false}
            value={oauth.clientId}
            onValue={(clientId) => set({ clientId })}
            error={errorOf("oauth.clientId")}
          />
          <TextField
            label="Client secret"
            hint="Stored encrypted and not shown again."
            required={oauth.clientSecret !== null}
            maxLength={1_024}
            autoComplete="off"
            spellCheck={false}
            placeholder={oauth.clientSecret === null ? "Stored secret" : ""}
            value={oauth.clientSecret ?? ""}
            onValue={(text) => set({ clientSecret: text === "" && isStored ? null : text })}
            error={errorOf("oauth.clientSecret")}
          />
          <TextField
            label="Scope"
            hint="Optional."
            value={oauth.scope ?? ""}
            onValue={(text) => set({ scope: text === "" ? null : text })}
            error={errorOf("oauth.scope")}
          />
          <TextField
            label="Audience"
            hint="Optional."
            value={oauth.audience ?? ""}
            onValue={(text) => set({ audience: text === "" ? null : text })}
            error={errorOf("oauth.audience")}
          />
          <Choices
            legend="Client authentication"
            type="radio"
            choices={[
              { value: "basic", label: "Authorization header (basic)" },
              { value: "post", label: "Parameters in the body (post)" }
            ]}
            chosen={[oauth.clientAuthentication]}
            onChosen={([clientAuthentication = "basic"]) => set({ clientAuthentication })}
            error={errorOf("oauth.clientAuthentication")}
          />
        </>
      )}
    </>
  )
}
