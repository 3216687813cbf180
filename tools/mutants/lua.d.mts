export interface Mutant {
  name: string
  file: string
  find: string
  replace: string
  tests: string[]
}
export const MUTANTS: readonly Mutant[]
