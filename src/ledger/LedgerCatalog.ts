/**
 * What a ledger remembers of the catalog: networks, assets, organizations, entities and vaults, which nearly every
 * record refers to and which seldom change. It is good for one version of the catalog, which a batch reads under its
 * lock; with another version everything is forgotten. In bounded memory.
 */
import { LRUCache } from "lru-cache"
import type { Asset, Entity, Network, Organization, Vault } from "./LedgerState.ts"

/** Rows of each kind that are remembered. */
const REMEMBERED = 20_000

const rows = <Row extends object>() => new LRUCache<string, Row>({ max: REMEMBERED })

export class LedgerCatalog {
  readonly networks = rows<Network>()
  readonly assets = rows<Asset>()
  readonly organizations = rows<Organization>()
  readonly entities = rows<Entity>()
  readonly vaults = rows<Vault>()
  #version = -1

  /** Forgets everything unless it is of this version. */
  at(version: number): this {
    if (version !== this.#version)
      for (const cache of [this.networks, this.assets, this.organizations, this.entities, this.vaults]) cache.clear()
    this.#version = version
    return this
  }
}
