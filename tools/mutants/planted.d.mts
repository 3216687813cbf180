import type { Mutant } from './lua.mjs'

export const PLANTED: readonly Mutant[]
