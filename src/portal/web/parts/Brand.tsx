/** The deployment's portal name and logo. */
const meta = document.querySelector<HTMLMetaElement>('meta[name="portal"]')

/** The portal's name. */
export const portalName = meta?.content ?? "Custody"

export const Brand = () => (
  <span className="brand">
    <img src={meta?.dataset["logo"]} alt="" width="24" height="24" />
    {portalName}
  </span>
)
