export function dashboardAssets(): Promise<Record<string, string>>
