/** The portal's name. */
export const Brand = () => (
  <span className="brand">
    <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden>
      <rect x="2" y="2" width="20" height="20" rx="6" fill="currentColor" />
      <circle cx="12" cy="12" r="5" fill="none" stroke="var(--surface)" strokeWidth="2" />
      <path d="M12 12 15.6 8.4" stroke="var(--surface)" strokeWidth="2" strokeLinecap="round" />
    </svg>
    Custody
  </span>
)
