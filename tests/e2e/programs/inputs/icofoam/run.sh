# The flow in a box with a moving lid. Each rank makes the case in its own container, so that its files move with it.
export WM_PROJECT_DIR=/usr/share/openfoam
mkdir -p /tmp/case/0 /tmp/case/constant /tmp/case/system
cd /tmp/case
put() {  # FILE CLASS: standard input behind OpenFOAM's header
  { echo "FoamFile { version 2.0; format ascii; class $2; object ${1##*/}; }"; cat; } >"$1"
}
put system/controlDict dictionary <<END
application icoFoam; startFrom startTime; startTime 0; stopAt endTime; endTime 1; deltaT 0.0025;
writeControl timeStep; writeInterval 400; writeFormat ascii; writePrecision 16; timePrecision 6; runTimeModifiable false;
END
put system/fvSchemes dictionary <<END
ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
END
put system/fvSolution dictionary <<END
solvers {
  p { solver PCG; preconditioner DIC; tolerance 1e-8; relTol 0.05; }
  pFinal { solver PCG; preconditioner DIC; tolerance 1e-8; relTol 0; }
  U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-8; relTol 0; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
END
put system/decomposeParDict dictionary <<END
numberOfSubdomains 2; method simple; simpleCoeffs { n (2 1 1); delta 0.001; }
END
put system/blockMeshDict dictionary <<END
convertToMeters 0.1;
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 0.1) (1 0 0.1) (1 1 0.1) (0 1 0.1));
blocks (hex (0 1 2 3 4 5 6 7) (40 40 1) simpleGrading (1 1 1));
boundary (
  lid { type wall; faces ((3 7 6 2)); }
  walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }
  sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
END
put constant/transportProperties dictionary <<END
nu 0.01;
END
put 0/U volVectorField <<END
dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField { lid { type fixedValue; value uniform (1 0 0); } walls { type noSlip; } sides { type empty; } }
END
put 0/p volScalarField <<END
dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } sides { type empty; } }
END
(blockMesh && decomposePar) >log 2>&1 || cat log
exec icoFoam -parallel
