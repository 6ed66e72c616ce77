/** The portal in a browser. */
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { createRoot } from "react-dom/client"
import { BrowserRouter } from "react-router"
import { App } from "./App.tsx"
import { sessionEnded } from "./api.ts"
import { worthwhile } from "./data.ts"
import { Notices } from "./parts/Notices.tsx"
import { SESSION } from "./session.ts"
import "./theme.ts"
import "uplot/dist/uPlot.min.css"
import "./style/fonts.css"
import "./style/base.css"
import "./style/layout.css"
import "./style/parts.css"
import "./style/lists.css"
import "./style/pages.css"

// Style elements of dialogs have the nonce of the document's policy; the library reads it here.
Object.assign(globalThis, { __webpack_nonce__: document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content })

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      // The first request that fails because the session has expired reloads the session.
      if (sessionEnded(error) && queryKey[0] !== SESSION[0]) void client.invalidateQueries({ queryKey: SESSION })
    }
  }),
  // A browser that reports being offline may still reach a service on its own machine or network.
  defaultOptions: { queries: { networkMode: "always", retry: worthwhile, staleTime: 2_000 } }
})

const place = document.getElementById("portal")
if (place !== null) {
  createRoot(place).render(
    <QueryClientProvider client={client}>
      <BrowserRouter basename="/portal">
        <App />
      </BrowserRouter>
      <Notices />
    </QueryClientProvider>
  )
}
