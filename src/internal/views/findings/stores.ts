/** Findings about stores that lose records. */
import { FAMILIES, type FamilyName } from '../../contract/families.js'
import type { Pingable } from '../../contract/page.js'
import type { Detector, ScanContext } from './detector.js'
import { type Finding, finding } from './finding.js'

async function warningsOf(name: FamilyName, scan: ScanContext, { warnings }: Pingable): Promise<Finding[]> {
  const source = FAMILIES[name].capability
  if (scan.failed.has(source)) return []
  const found = await scan.inspect(source, async ({ ctx }) => warnings?.call(scan.inspectors[name], ctx))
  return (found ?? [])
    .filter(({ code }) => code === 'store_evicts')
    .map((warning) => finding('store_evicts', { source }, null, [scan.evidence(source, '/sources', { ...warning })]))
}

/** Sources that other findings need: what else there is shares their stores. */
const ASKED = ['registry', 'contextRegistry', 'browserWindowRegistry', 'rpc', 'delivery', 'sessions'] as const

/** Sources that share a store have the same warning: the first of them is named. */
export const STORES_EVICTING: Detector = {
  kinds: ['store_evicts'],
  requires: [],
  source: 'delivery',
  async detect(scan) {
    const all = await Promise.all(
      ASKED.map((name) => {
        const inspector: Pingable | undefined = scan.inspectors[name]
        return inspector?.warnings ? warningsOf(name, scan, inspector) : []
      }),
    )
    const byDetail = new Map<unknown, Finding>()
    for (const one of all.flat()) {
      const detail = one.evidence[0]?.fields.detail
      if (!byDetail.has(detail)) byDetail.set(detail, one)
    }
    return { findings: [...byDetail.values()], next: null }
  },
}
