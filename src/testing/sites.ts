/** Contract suite of the site inspector. */
import { SiteFilter, type SiteInspector, SiteRow } from '../contract/sites.js'
import {
  type ContractCase,
  check,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { listCases, type MakeInspector, walk } from './lists.js'

/** Returns the contract suite of a site inspector. `make` creates one with the same sites each time. */
export function siteContract(make: MakeInspector<SiteInspector>): ContractCase[] {
  return toCases([
    ...listCases<SiteInspector, SiteRow>(make, {
      name: 'listSites',
      list: (sites, filter) => (page, ctx) => sites.listSites(filter, page, ctx),
      item: SiteRow,
      id: 'site_id',
      filters: SiteFilter.keyof().options,
      get: (sites, id, ctx) => sites.getSite(id, ctx),
    }),
    {
      name: 'listSites returns the time and the position of the last event together, or neither',
      run: () => checkLife(make),
    },
  ])
}

async function checkLife(make: MakeInspector<SiteInspector>): Promise<void> {
  const sites = await make()
  if (!sites) return notTested('listSites is not implemented')
  for (const row of await walk<SiteRow>((page, ctx) => sites.listSites({}, page, ctx), 100, 'listSites'))
    check(
      (row.last_event_at === null) === (row.last_position === null),
      `${row.site_id} has a last event without its position, or the reverse`,
    )
}

/** Data of the fake site inspector. */
export interface SiteWorld {
  /** Sites. */
  sites?: Partly<SiteRow>[]
}

const toSite: Make<SiteRow> = (given, place) =>
  fill(
    {
      site_id: `site-${place}`,
      owner: 'user-1',
      mode: 'cooperative',
      title: null,
      event_names: [],
      action_names: [],
      capability_profile: { action_invocation: false },
      created_at: FAKE_TIME,
      updated_at: FAKE_TIME,
      sessions: null,
      last_event_at: null,
      last_position: null,
    },
    given,
  )

export function fakeSites(world: SiteWorld): SiteInspector | undefined {
  if (!world.sites) return undefined
  return {
    listSites: (filter, page) => fakePage(toSite, world.sites, filter, page),
    getSite: (site_id) => find(toSite, world.sites, { site_id }),
  }
}
