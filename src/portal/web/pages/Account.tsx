import { Link } from "react-router"
import { post, remove } from "../api.ts"
import { useOne } from "../data.ts"
import { Button } from "../parts/Button.tsx"
import { Ask } from "../parts/Dialog.tsx"
import { Select } from "../parts/Field.tsx"
import { attempt, notify } from "../parts/Notices.tsx"
import { Facts, Page, Section } from "../parts/Page.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time, useZone } from "../parts/Time.tsx"
import { useUser } from "../session.ts"
import { useTheme } from "../theme.ts"
import { BackupCodesSection, PasskeysSection, PasswordSection } from "./Security.tsx"

export const AccountPage = () => {
  const user = useUser()
  const [zone, setZone] = useZone()
  const [theme, setTheme] = useTheme()
  const leave = async () => {
    await post("/sign-out")
    // A reload discards everything the page has shown.
    location.reload()
  }
  return (
    <Page title="Account" actions={<Button onClick={attempt(leave)}>Sign out</Button>}>
      <Facts
        rows={[
          ["Name", user.name],
          ["E-mail address", user.email],
          [
            "Organization",
            user.isOwner ? (
              <>
                {user.organization.name} (<Link to="/members">members</Link>)
              </>
            ) : (
              user.organization.name
            )
          ],
          ["Role", user.isOwner ? "Owner" : "Member"]
        ]}
      />
      <Section title="Display">
        <div className="form">
          <Select label="Show times in" value={zone} onValue={setZone}>
            <option value="local">Local time ({Intl.DateTimeFormat().resolvedOptions().timeZone})</option>
            <option value="utc">UTC</option>
          </Select>
          <Select label="Theme" value={theme} onValue={setTheme}>
            <option value="system">Of the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </Select>
        </div>
      </Section>
      <SessionsSection />
      {user.hasPassword ? <PasswordSection /> : null}
      <BackupCodesSection />
      <PasskeysSection />
    </Page>
  )
}

/** “Firefox on Linux”, derived from the user agent. */
const browserOf = (agent: string | null): string => {
  const text = agent ?? ""
  const browser = [
    ["Edg/", "Edge"],
    ["OPR/", "Opera"],
    ["Firefox/", "Firefox"],
    ["Chrome/", "Chrome"],
    ["Safari/", "Safari"]
  ].find(([mark = ""]) => text.includes(mark))?.[1]
  const system = [
    ["Android", "Android"],
    ["iPhone", "iPhone"],
    ["iPad", "iPad"],
    ["Windows", "Windows"],
    ["Mac OS", "macOS"],
    ["Linux", "Linux"]
  ].find(([mark = ""]) => text.includes(mark))?.[1]
  return browser === undefined
    ? text === ""
      ? "Unknown browser"
      : text.slice(0, 60)
    : `${browser}${system === undefined ? "" : ` on ${system}`}`
}

const SessionsSection = () => {
  const sessions = useOne("/sessions", { every: 30_000 })
  const everywhere = async () => {
    await post("/sessions/end-all")
    // A reload discards everything the page has shown.
    location.reload()
  }
  const end = async (id: string) => {
    await remove(`/sessions/${id}`)
    await sessions.refetch()
    notify("Session ended")
  }
  return (
    <Section
      title="Sessions"
      lead="Where you are signed in. A session ends after one hour of inactivity, and after twelve hours in any case."
      actions={
        <Ask
          label="Sign out everywhere"
          kind="danger"
          title="Sign out everywhere?"
          text="This ends every session, including this one. API keys keep working."
          yes="Sign out everywhere"
          danger
          act={everywhere}
        />
      }
    >
      {sessions.data === undefined ? (
        sessions.error === null ? (
          <Loading lines={2} />
        ) : (
          <Failure error={sessions.error} retry={() => void sessions.refetch()} />
        )
      ) : (
        <ul className="rows" aria-label="Sessions">
          {sessions.data.data.map(({ createdAt, current, id, ipAddress, lastSeenAt, userAgent }) => (
            <li key={id}>
              <article className="row session">
                <div className="what">
                  <h3>{browserOf(userAgent)}</h3>
                  <p className="under">
                    From {ipAddress ?? "an unknown address"}, since <Time at={createdAt} />
                  </p>
                </div>
                {current ? (
                  <Status tone="good">This session</Status>
                ) : (
                  <p className="under">
                    Last active <Time at={lastSeenAt} as="ago" />
                  </p>
                )}
                <div className="actions">{current ? null : <Button onClick={attempt(() => end(id))}>Sign out</Button>}</div>
              </article>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
