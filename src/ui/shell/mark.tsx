/** Two lights of a signal. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="mark-post" />
      <circle cx="16" cy="9" r="4" className="mark-stop" />
      <circle cx="16" cy="21" r="5.5" className="mark-go" />
      <path d="M16 13v2" className="mark-line" />
    </svg>
  )
}
