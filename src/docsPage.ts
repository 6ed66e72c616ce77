export const docsPage = "<!doctype html><title>docs</title>"
