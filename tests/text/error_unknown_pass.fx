# RUN: dce,constant_fould
# ERROR: kUnknownPass there is no pass 'constant_fould'; did you mean 'constant_fold'?
fx 1
%x = placeholder[target=x]
return %x
