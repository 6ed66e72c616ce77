/** Shows the error of a page that could not be loaded or rendered, until the user opens another page. */
import { Component, type ReactNode } from "react"
import { useLocation } from "react-router"
import { Failure } from "./States.tsx"

class Boundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state = { error: null as unknown }
  static getDerivedStateFromError(error: unknown) {
    return { error }
  }
  override render() {
    if (this.state.error === null) return this.props.children
    // The browser caches the failure until the document is reloaded.
    return (
      <div className="page">
        <Failure error={new Error("This page could not be loaded. The service may be unavailable.")} retry={() => location.reload()} />
      </div>
    )
  }
}

export const ErrorBoundary = ({ children }: { readonly children: ReactNode }) => {
  const { pathname } = useLocation()
  return <Boundary key={pathname}>{children}</Boundary>
}
