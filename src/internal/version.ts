/** The version of the package, set at build time from package.json. */
declare const RELAYSCOPE_VERSION: string

export const VERSION: string = RELAYSCOPE_VERSION
