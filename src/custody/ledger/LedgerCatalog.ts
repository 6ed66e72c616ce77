/**
 * The ledger's cache of the catalog: networks, assets, organizations, entities and vaults, which nearly every record
 * refers to and which seldom change. It is valid for one version of the catalog, which a batch reads under its lock; with
 * another version the cache is cleared. Bounded memory.
 */
import { LRUCache } from "lru-cache"
import type { Asset, Entity, Network, Organization, Vault } from "./LedgerState.ts"

/** Cached rows per kind. */
const REMEMBERED = 20_000

const rows = <Row extends object>() => new LRUCache<string, Row>({ max: REMEMBERED })

export class LedgerCatalog {
  readonly networks = rows<Network>()
  readonly assets = rows<Asset>()
  readonly organizations = rows<Organization>()
  readonly entities = rows<Entity>()
  readonly vaults = rows<Vault>()
  /** Organizations that are being deleted; undefined until they are read. */
  deleting: ReadonlySet<string> | undefined
  #version = -1

  /** Clears the cache unless it has this version. */
  at(version: number): this {
    if (version !== this.#version) {
      this.deleting = undefined
      for (const cache of [this.networks, this.assets, this.organizations, this.entities, this.vaults]) cache.clear()
    }
    this.#version = version
    return this
  }
}
