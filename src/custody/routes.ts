/** The API's routes of custody data, with the repositories that they read. Spec: Custody reads. */
import { Layer } from "effect"
import { AccessChecks } from "../access/credentials/AccessChecks.ts"
import { routed } from "../runtime/database/replica/ReadReplica.ts"
import { CatalogRepo } from "./catalog/CatalogRepo.ts"
import * as catalog from "./catalog/handlers.ts"
import * as portfolio from "./portfolio/handlers.ts"
import { PortfolioRepo } from "./portfolio/PortfolioRepo.ts"
import * as statements from "./statements/handlers.ts"
import { StatementsRepo } from "./statements/StatementsRepo.ts"
import { BalanceHistoryRepo } from "./vaults/BalanceHistoryRepo.ts"
import { Exports } from "./vaults/Exports.ts"
import * as vaults from "./vaults/handlers.ts"
import { TransactionExport } from "./vaults/TransactionExport.ts"
import { VaultsRepo } from "./vaults/VaultsRepo.ts"

/** Reads that may use a replica and be up to 5 seconds old: custody data and its catalog. All others use the primary. Decision D-58. */
const custodyReads = Layer.provide(
  Layer.mergeAll(
    VaultsRepo.layer,
    BalanceHistoryRepo.layer,
    PortfolioRepo.layer,
    CatalogRepo.layer,
    Layer.provideMerge(TransactionExport.layer, Exports.layer)
  ),
  routed
)

export const layer = Layer.mergeAll(vaults.layer, portfolio.layer, statements.layer, catalog.layer).pipe(
  Layer.provide([Layer.provide(custodyReads, AccessChecks.layer), StatementsRepo.layer])
)
