/** The layer of commands that read the settings. It is loaded when one runs, so that help and usage errors need neither. */
import { Effect, Layer } from "effect"

/** Settings, data directory and logs; fails if a setting is invalid. */
export const base = Layer.unwrapEffect(
  Effect.map(
    Effect.promise(() => import("../../app/Base.ts")),
    ({ base }) => base
  )
)
